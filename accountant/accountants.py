"""Ways to turn events into an epsilon: each says whether its number is exact, and what it cannot price.

========== ======================================================= ===========================================
method     what it prices                                          bound
========== ======================================================= ===========================================
exact      Gaussian noise, with groups                             exact
joint      pure and Gaussian parts, as one finite sum              upper bound; exact for randomised response
sequential pure epsilons added to the Gaussian one                 upper bound
as Gaussian everything but full-delta parts, as one mu             upper bound
Renyi      everything with a Renyi divergence, at the best order   upper bound
PLD        subsampled Gaussian noise, by loss distributions        upper bound, to its grid
========== ======================================================= ===========================================

:func:`smallest` asks all that can answer in well under a second and takes the smallest. A part without noise is
``no promise`` for all of them.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from accountant import check, gaussian, sequential
from accountant.bound import Bound
from accountant.cost import Cost, leaf_cost, total
from accountant.events import Event, LaplaceTopK, Leaf, SubsampledGaussian, counted, merged
from accountant.relations import per_clip_norm


class CannotPriceError(ValueError):
    """An accountant has no answer for these events; another one may."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An epsilon, and who gave it.

    Attributes:
        epsilon: in nats, >= 0; inf if nothing is promised.
        method: name of the accountant.
        bound: whether another analysis of the same events could give less.
    """

    epsilon: float
    method: str
    bound: Bound


class AbstractAccountant(ABC):
    """Prices events."""

    name: ClassVar[str]
    bound: ClassVar[Bound] = Bound.UPPER

    def answer(self, event: Event, *, delta: float) -> Answer:
        """Return the epsilon of some events.

        Args:
            event: everything that was released, whole.
            delta: in (0, 1); 0 is allowed where there is no Gaussian part.

        Raises:
            CannotPriceError: says what this accountant does not price.
            UnsupportedEventError: names the part that no accountant prices.
        """
        cost = total(event)
        left = cost.delta_left(delta)
        if cost.unbounded is not None or left < 0 or (left == 0 < delta and cost.mu > 0):
            return Answer(epsilon=math.inf, method="no promise", bound=Bound.EXACT)
        if cost.mu == 0 and not cost.pure:
            return Answer(epsilon=0.0, method="nothing ran", bound=Bound.EXACT)
        return Answer(epsilon=self._epsilon(event, cost, left), method=self.name, bound=self.bound)

    @abstractmethod
    def _epsilon(self, event: Event, cost: Cost, delta: float) -> float:
        """Return the epsilon of events that cost something, at what is left of delta."""


class Exact(AbstractAccountant):
    """The closed form of Gaussian differential privacy."""

    name = "exact"
    bound = Bound.EXACT

    def _epsilon(self, event: Event, cost: Cost, delta: float) -> float:
        if cost.pure or not cost.tight or cost.log_kept:
            raise CannotPriceError("only Gaussian noise has an exact price; use another accountant.")
        return gaussian.epsilon_from_mu(mu=cost.mu, delta=delta)


class Joint(AbstractAccountant):
    """The finite sum of randomised responses next to a Gaussian (:mod:`accountant.joint`)."""

    name = "joint"

    def _epsilon(self, event: Event, cost: Cost, delta: float) -> float:
        from accountant import joint
        from accountant.response import TooManyAtomsError

        try:
            return joint.epsilon(delta=delta, mu=cost.mu, pure=dict(cost.pure))
        except TooManyAtomsError as error:
            raise CannotPriceError(str(error)) from None


class Sequential(AbstractAccountant):
    """Pure epsilons added to the epsilon of the Gaussian part (:mod:`accountant.sequential`)."""

    name = "sequential"

    def _epsilon(self, event: Event, cost: Cost, delta: float) -> float:
        return sequential.epsilon(delta=delta, mu=cost.mu, pure=dict(cost.pure))


class AsGaussian(AbstractAccountant):
    """Every part as the Gaussian mechanism that is no better than it."""

    name = "as Gaussian"

    def _epsilon(self, event: Event, cost: Cost, delta: float) -> float:
        if delta == 0:
            raise CannotPriceError("delta=0 is never reached by a Gaussian; use the joint accountant.")
        return gaussian.epsilon_from_mu(mu=gaussian_mu(event), delta=delta)


class Renyi(AbstractAccountant):
    """Renyi divergence at the best order (:mod:`accountant.renyi`)."""

    name = "Renyi"

    def _epsilon(self, event: Event, cost: Cost, delta: float) -> float:
        from accountant import renyi

        if delta == 0:
            raise CannotPriceError(
                "delta=0 is never reached by a Renyi divergence; use the joint accountant."
            )
        return renyi.best_bound(event, delta=delta)


class Pld(AbstractAccountant):
    """Privacy loss distributions of one kind of subsampled step (:mod:`accountant.subsampled_pld`)."""

    name = "PLD"

    def _epsilon(self, event: Event, cost: Cost, delta: float) -> float:
        steps = counted(event)
        leaf = next(iter(steps))
        if len(steps) > 1 or not isinstance(leaf, SubsampledGaussian) or not leaf.amplified:
            raise CannotPriceError("only repeated steps of one subsampled Gaussian are priced by PLD here.")
        from accountant import subsampled_pld

        try:
            found = subsampled_pld.epsilon(
                noise_multiplier=per_clip_norm(leaf),
                sampling_rate=leaf.sampling_rate,
                steps=steps[leaf],
                delta=delta,
                relation=leaf.contract.relation,
            )
        except ValueError as error:
            raise CannotPriceError(str(error)) from None
        if math.isinf(found):
            raise CannotPriceError("the losses are beyond the grid of PLD; use the Renyi accountant.")
        return found


ACCOUNTANTS: tuple[AbstractAccountant, ...] = (Exact(), Joint(), Sequential(), AsGaussian(), Renyi(), Pld())


def answers(event: Event, *, delta: float) -> tuple[Answer, ...]:
    """Return the answer of every accountant that has one, each once.

    Raises:
        UnsupportedEventError: names the part that no accountant prices.
        ValueError: delta is no probability below 1, or 0 next to Gaussian noise.
    """
    event = merged(event)
    _refuse_delta(event, delta)
    found = {answer.method: answer for answer in _asked(ACCOUNTANTS, event, delta)}
    return tuple(found.values())


def smallest(event: Event, *, delta: float) -> Answer:
    """Return the smallest epsilon that any accountant gives, and whose it is; an exact one is never beaten.

    Renyi divergence and PLD are asked only where the others bound a part from above, or where there is no joint sum.
    Arguments and errors as in :func:`answers`.

    >>> from accountant.events import Gaussian, Repeated
    >>> smallest(Repeated(event=Gaussian(noise_multiplier=26.37954927), count=50), delta=1e-5).method
    'exact'
    """
    event = merged(event)
    _refuse_delta(event, delta)
    for answer in _asked((Exact(),), event, delta):
        return answer
    found = list(_asked((Joint(),), event, delta))
    others = ACCOUNTANTS[2:-2] if found and total(event).tight else ACCOUNTANTS[2:]
    found.extend(_asked(others, event, delta))
    return min(found, key=lambda answer: answer.epsilon)


def gaussian_mu(event: Event) -> float:
    """Return a mu for which all of an event together is mu-GDP, approximate parts apart.

    Laplace noise on a selection's scores counts as noise on the whole score vector where that costs less:
    every coordinate moves by at most H.
    """
    return math.hypot(*(math.sqrt(times) * gaussian_mu_of(leaf) for leaf, times in counted(event).items()))


def gaussian_mu_of(leaf: Leaf) -> float:
    """Return a mu for which ONE run of a leaf is mu-GDP, approximate parts apart."""
    cost = leaf_cost(leaf)
    mu = math.hypot(cost.mu, *(gaussian.mu_from_pure_epsilon(epsilon=epsilon) for epsilon, _ in cost.pure))
    if isinstance(leaf, LaplaceTopK):
        return min(mu, math.sqrt(leaf.dim) * gaussian.mu_from_laplace(shift=leaf.score_bound / leaf.scale))
    return mu


def _refuse_delta(event: Event, delta: float) -> None:
    check.closed_unit(delta=delta)
    if delta == 1 or (delta == 0 and total(event).mu > 0):
        raise ValueError(f"delta={delta} must lie strictly between 0 and 1; Gaussian noise never reaches 0.")


def _asked(accountants: tuple[AbstractAccountant, ...], event: Event, delta: float) -> Iterator[Answer]:
    for accountant in accountants:
        with suppress(CannotPriceError):
            yield accountant.answer(event, delta=delta)
