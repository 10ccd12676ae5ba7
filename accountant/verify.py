"""Whether a stated (epsilon, delta) is true, by how much it is wrong or wasteful, and what it rests on."""

import math
from dataclasses import dataclass, replace
from typing import Any

from accountant import check
from accountant.accountants import smallest
from accountant.beside import mu_beside
from accountant.bracket import safe_root
from accountant.claimed_rules import Formula, Recipe
from accountant.claims import Claim, Under, claim, neighbours
from accountant.consequences import Broken
from accountant.contract import Relation
from accountant.cost import leaf_cost, total
from accountant.events import Composed, Event, Gaussian, GroupGaussian, Repeated, counted

_TOLERANCE = 1e-9  # relative; noise printed to ten digits is not called false
_LEAST_LOG_DELTA = -690.0
_LARGEST_MU = 1e150  # epsilon is about mu^2 / 2


@dataclass(frozen=True, kw_only=True)
class Verification:
    """A stated budget next to the truth.

    Attributes:
        epsilon: stated, in nats.
        delta: stated.
        claim: what the releases really promise at that delta, with the assumptions that it rests on.
        true_delta: smallest known delta at the stated epsilon, in [0, 1].
        sigma: noise multiplier per round of the Gaussian part; None if there is none.
        least_sigma: smallest one that keeps the stated budget beside everything else; None if there is no Gaussian
            part, or the rest alone spends the budget.
        under: what the same releases cost under every neighbouring relation, or why nothing holds.
        least_c1: smallest constant of the published formula that would be right here; None if no formula was used.
        examples: ids of counterexamples for a number that is false.
        judged: whether the releases come with contracts; a formula alone has none, so its assumptions are not checked.
    """

    epsilon: float
    delta: float
    claim: Claim
    true_delta: float
    sigma: float | None
    least_sigma: float | None
    under: dict[Relation, Under]
    least_c1: float | None = None
    examples: tuple[str, ...] = ()
    judged: bool = True

    @property
    def broken(self) -> tuple[Broken, ...]:
        """Return the assumptions that the contracts break or leave open; none where there is no contract."""
        return self.claim.broken if self.judged else ()

    @property
    def relations(self) -> dict[Relation, float | str]:
        """Return epsilon of the same releases under every neighbouring relation, or why there is none."""
        return {
            relation: found.reason if found.epsilon is None else found.epsilon
            for relation, found in self.under.items()
        }

    @property
    def valid(self) -> bool:
        """Return whether the stated number is true, should every assumption hold."""
        return self.claim.epsilon <= self.epsilon * (1 + _TOLERANCE)

    @property
    def excess_percent(self) -> float | None:
        """Return how much more noise than needed there is, in percent; below 0 is what is missing."""
        if self.sigma is None or self.least_sigma is None:
            return None
        return 100 * (self.sigma / self.least_sigma - 1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; an infinite epsilon is None."""
        finite = math.isfinite(self.claim.epsilon)
        return {
            "claimed": {"epsilon": self.epsilon, "delta": self.delta},
            "sigma": self.sigma,
            "true_epsilon": self.claim.epsilon if finite else None,
            "true_delta": self.true_delta,
            "valid": self.valid,
            "least_sigma": self.least_sigma,
            "excess_percent": self.excess_percent,
            "smallest_valid_c1": self.least_c1,
            "claim": self.claim.to_dict()
            if self.judged
            else self.claim.to_dict() | {"covered": None, "broken": []},
            "relations": {
                relation.value: None if found == math.inf else found
                for relation, found in self.relations.items()
            },
            "at_fixed_counts": {
                relation.value: found.at_fixed_counts
                for relation, found in self.under.items()
                if found.at_fixed_counts is not None
            },
            "examples": list(self.examples),
        }


def verify(event: Event, *, epsilon: float, delta: float, rounds: int) -> Verification:
    """Hold what releases cost against a stated budget.

    Args:
        event: everything that is released, whole.
        epsilon: stated, in nats, > 0.
        delta: stated, in (0, 1).
        rounds: that the noise multiplier is stated per, at least 1.

    >>> release = Repeated(event=Gaussian(noise_multiplier=26.0), count=50)
    >>> found = verify(release, epsilon=1.0, delta=1e-5, rounds=50)
    >>> found.valid, round(found.claim.epsilon, 3), f"{found.true_delta:.2e}", round(found.excess_percent, 2)
    (False, 1.016, '1.27e-05', -1.44)
    """
    check.positive(epsilon=epsilon)
    check.open_unit(delta=delta)
    check.count(rounds=rounds)
    sigma, least = _noise(event, epsilon=epsilon, delta=delta, rounds=rounds)
    return Verification(
        epsilon=epsilon,
        delta=delta,
        claim=claim(event, delta=delta),
        true_delta=true_delta(event, epsilon=epsilon),
        sigma=sigma,
        least_sigma=least,
        under=neighbours(event, delta=delta),
    )


def verify_recipe(recipe: Recipe) -> Verification:
    """Hold what a paper's or a code's recipe costs against the budget that it is for.

    >>> found = verify_recipe(Recipe(epsilon=8.0, delta=1e-5, rounds=1, rule=Formula(c1=1.0)))
    >>> found.valid, round(found.claim.epsilon, 3), round(found.true_delta, 4), round(found.least_c1, 3)
    (False, 12.267, 0.0062, 1.415)
    """
    found = verify(recipe.event, epsilon=recipe.epsilon, delta=recipe.delta, rounds=recipe.rounds)
    least_c1 = None
    if isinstance(recipe.rule, Formula) and found.least_sigma is not None and found.sigma is not None:
        least_c1 = recipe.rule.c1 * found.least_sigma / found.sigma
    examples = () if found.valid else recipe.examples
    return replace(found, least_c1=least_c1, examples=examples, judged=False)


def true_delta(event: Event, *, epsilon: float) -> float:
    """Return the smallest known delta for which releases are (epsilon, delta)-DP, in [0, 1].

    Args:
        event: everything that is released, whole.
        epsilon: in nats, > 0.

    Returns:
        0.0 below e^-690, and where no outcome loses more than epsilon.
    """
    if total(event).unbounded is not None:
        return 1.0
    if not counted(event):
        return 0.0

    def excess(log_delta: float) -> float:
        found = smallest(event, delta=math.exp(log_delta)).epsilon / epsilon
        return math.log(found) if found > 0 else -math.inf

    if excess(_LEAST_LOG_DELTA) <= 0:
        return 0.0
    almost_sure = -1e-12
    if excess(almost_sure) > 0:
        return 1.0
    return math.exp(safe_root(excess, safe=almost_sure, unsafe=_LEAST_LOG_DELTA))


def _noise(event: Event, *, epsilon: float, delta: float, rounds: int) -> tuple[float | None, float | None]:
    """Return the noise multiplier per round of the Gaussian releases, and the least that would keep a budget."""
    mus, rest = [], []
    for leaf, times in counted(event).items():
        if isinstance(leaf, Gaussian | GroupGaussian):
            mus.append(math.sqrt(times) * leaf_cost(leaf).mu)
        else:
            rest.append(Repeated(event=leaf, count=times))
    if not mus:
        return None, None
    sigma = math.sqrt(rounds) / math.hypot(*mus)
    if math.hypot(*mus) > _LARGEST_MU:
        raise ValueError(f"sigma={sigma:g} is so little noise that no float holds its epsilon; give more.")
    try:
        allowed = mu_beside(Composed(events=tuple(rest)), epsilon=epsilon, delta=delta)
    except ValueError:  # the rest alone spends it, or has no noise
        return sigma, None
    return sigma, math.sqrt(rounds) / allowed
