"""What a broken assumption costs: by how much one record moves more than the claim says.

The claim's noise stays as it is, so a consequence is a factor on mu: finite where the range of the released
vectors still bounds the move, infinite where neighbours can be told apart for certain (delta = 1), unknown where
nothing that was declared bounds it. Each names minimal counterexamples, which ``privkit explain`` runs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from accountant import gaussian
from accountant.accountants import gaussian_mu_of
from accountant.contract import Contract, DependsOn, Query, Relation
from accountant.cost import total
from accountant.events import Composed, Gaussian, GroupGaussian, Leaf, Repeated, SubsampledGaussian
from accountant.relations import defined, reach


class Consequence(NamedTuple):
    """What follows from one broken assumption.

    Attributes:
        factor: true mu / claimed mu, at least 1; inf for delta = 1, None when nothing declared bounds it.
        words: why, in a sentence.
    """

    factor: float | None
    words: str


@dataclass(frozen=True, kw_only=True)
class Broken:
    """An assumption that a contract breaks or leaves open, and its price.

    Attributes:
        id: of the assumption, "A1" to "A10".
        reason: why it is broken, in a sentence.
        cost: what that costs, in a sentence.
        epsilon: at the claim's delta once this is priced, all else as claimed; inf for delta = 1, None if unknown.
        examples: ids of counterexamples, "E1" to "E13".
    """

    id: str
    reason: str
    cost: str
    epsilon: float | None
    examples: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; an epsilon that is infinite or unknown is None, see ``cost``."""
        finite = self.epsilon is not None and math.isfinite(self.epsilon)
        return {**vars(self), "epsilon": self.epsilon if finite else None, "examples": list(self.examples)}


def priced(id: str, reason: str, leaves: dict[Leaf, int], breaking: set[Leaf], *, delta: float) -> Broken:
    """Return an assumption with what breaking it costs.

    Args:
        id: of the assumption.
        reason: why it is broken.
        leaves: everything that was released, each with how often it ran.
        breaking: those that break it.
        delta: of the claim, in (0, 1).
    """
    found = {leaf: _consequence(id, leaf) for leaf in leaves if leaf in breaking}
    factors = {leaf: consequence.factor for leaf, consequence in found.items()}
    worst = max(found.values(), key=_severity)
    epsilon = _epsilon(leaves, factors, delta)
    return Broken(
        id=id,
        reason=reason,
        cost=f"{worst.words}: {_in_numbers(epsilon, factors)}",
        epsilon=epsilon,
        examples=EXAMPLES[id],
    )


def _consequence(id: str, leaf: Leaf) -> Consequence:
    """Return what follows for one leaf; a guarantee without a mechanism says nothing of larger moves."""
    found = _CONSEQUENCES[id](leaf.contract)
    grows = found.factor is not None and 1 < found.factor < math.inf
    if grows and not isinstance(leaf, Gaussian | GroupGaussian | SubsampledGaussian):
        return Consequence(None, f"{found.words}, and {type(leaf).__name__} promises nothing then")
    return found


def _severity(consequence: Consequence) -> tuple[bool, bool, float]:
    """Return what sorts consequences: certain loss last, before it the unknown ones."""
    return consequence.factor == math.inf, consequence.factor is None, consequence.factor or 0.0


def _epsilon(leaves: dict[Leaf, int], factors: dict[Leaf, float | None], delta: float) -> float | None:
    cost = total(Composed(events=tuple(Repeated(event=leaf, count=times) for leaf, times in leaves.items())))
    left = cost.delta_left(delta)
    if math.inf in factors.values() or cost.unbounded is not None or left < 0:
        return math.inf
    if None in factors.values() or left == 0:
        return None
    moved = (
        math.sqrt(times) * gaussian_mu_of(leaf) * (factors.get(leaf) or 1.0) for leaf, times in leaves.items()
    )
    mu = math.hypot(*moved)
    return gaussian.epsilon_from_mu(mu=mu, delta=left) if mu > 0 else 0.0


def _in_numbers(epsilon: float | None, factors: dict[Leaf, float | None]) -> str:
    if epsilon is None:
        return "no epsilon is known"
    if math.isinf(epsilon) and math.inf not in factors.values():
        return "no epsilon holds, another release promises none"
    if math.isinf(epsilon):
        return "delta = 1, no epsilon holds"
    return f"mu is {max(f for f in factors.values() if f is not None):.4g} times what is claimed, epsilon {epsilon:.4g}"


def _encoder(contract: Contract) -> Consequence:
    words = "every vector of every class can move over its whole range of 2R"
    query, counts = contract.query, contract.class_counts
    by_class = query in (Query.CLASS_MEANS, Query.CLASS_SUMS, Query.SUMS_AND_COUNTS)
    if query is not None and by_class and counts and defined(query, contract.relation):
        return Consequence(max(2 * math.hypot(*counts) / reach(query, contract.relation), 1.0), words)
    return Consequence(None, f"{words}, and how many records are behind each is not declared")


def _relation(contract: Contract) -> Consequence:
    return Consequence(
        math.inf, "a record that comes or goes changes the count, and with it vector and noise"
    )


def _counts(contract: Contract) -> Consequence:
    if contract.counts is None:
        return Consequence(None, "if they are not, a noise scale or weight that follows them gives them away")
    if contract.query is Query.CLASS_MEANS and contract.relation is Relation.REPLACE_ANY_LABEL:
        return Consequence(
            math.inf,
            "a label change moves two classes, and a class that it empties or fills is missing or new",
        )
    return Consequence(math.inf, "a class of one record that loses it is missing from the message")


def _clip(contract: Contract) -> Consequence:
    return Consequence(None, "without one, a record can move a mean as far as it likes")


def _assignment(contract: Contract) -> Consequence:
    if contract.assignment is None:
        return Consequence(None, "if private state assigns them, one record can move vectors without limit")
    return Consequence(
        math.inf, "one record can change how many vectors are sent, and move the others without limit"
    )


def _hyperparameters(contract: Contract) -> Consequence:
    if contract.hyperparameters is DependsOn.PAST_OUTPUTS:
        return Consequence(1.0, "a filter on the sum of mu^2 prices choices made on earlier outputs")
    return Consequence(
        None, "a choice made on private data is a release of its own that nothing accounts for"
    )


def _noise(contract: Contract) -> Consequence:
    if contract.fresh_noise is None:
        return Consequence(None, "with noise drawn once, differences of releases are free of it")
    return Consequence(math.inf, "differences of releases are free of noise")


def _whole_run(contract: Contract) -> Consequence:
    return Consequence(None, "what was left out of the account is not known to it")


_CONSEQUENCES: dict[str, Callable[[Contract], Consequence]] = {
    "A1": _encoder,
    "A2": _relation,
    "A3": _counts,
    "A4": _clip,
    "A5": _assignment,
    "A6": _hyperparameters,
    "A7": _whole_run,
    "A8": _whole_run,
    "A9": _noise,
    "A10": _whole_run,
}

EXAMPLES: dict[str, tuple[str, ...]] = {
    "A1": ("E7",),
    "A2": ("E2", "E13"),
    "A3": ("E3", "E4"),
    "A4": ("E8", "E9"),
    "A5": ("E5", "E6"),
    "A6": (),
    "A7": ("E11", "E12"),
    "A8": ("E10",),
    "A9": (),
    "A10": (),
}
"""Which counterexamples show an assumption broken."""
