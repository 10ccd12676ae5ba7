"""Privacy loss distributions through dp-accounting, kept away from where it fails.

An independent check of the closed forms, accurate to its grid and three orders of magnitude slower.
Version 0.6 has faults that this module steps around or refuses:

============================================  ==============================================================
fault                                         here
============================================  ==============================================================
a NaN noise multiplier costs nothing          events refuse NaN
a repeated randomised response counts once    pure parts are composed one by one, as often as they ran
epsilon_0 is rounded up to the grid           the grid divides the smallest epsilon_0
memory grows without bound at small sigma     more than 8 million grid points are refused
delta below 1e-12 drowns in rounding          refused
============================================  ==============================================================
"""

import math
from typing import TYPE_CHECKING

from accountant import check, gaussian
from accountant.bracket import safe_root
from accountant.cost import Cost, total
from accountant.events import Event

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_GRID = 1e-4  # nats; dp-accounting's own default
_POINTS = 2_500_000  # about 700 MB and eight seconds
_SMALLEST_DELTA = 1e-12
_TAIL = 10.0  # standard deviations of the privacy loss that dp-accounting keeps on each side


def epsilon_from_event(event: Event, *, delta: float, grid: float = _GRID) -> float:
    """Return the epsilon of any events by dp-accounting's privacy loss distributions.

    Pure parts count as randomised response, the worst of their kind, with each eps_0 rounded up to the
    grid.

    Args:
        event: everything that was released, whole.
        delta: in [1e-12, 1).
        grid: largest spacing of privacy losses, in nats, > 0.

    Returns:
        In nats, >= 0, an upper bound to its grid; inf if a part promises nothing.

    Raises:
        UnsupportedEventError: names the part whose cost is not known.
        ValueError: delta is too small or the grid would not fit into memory.
    """
    _check_delta(delta)
    check.positive(grid=grid)
    cost = total(event)
    if cost.unbounded is not None:
        return math.inf
    if not cost.pure and cost.mu == 0:
        return 0.0
    return float(_distribution(cost, grid).get_epsilon_for_delta(delta))


def sigma_from_epsilon(*, epsilon: float, delta: float, rounds: int = 1) -> float:
    """Return the noise multiplier that privacy loss distributions ask for; takes about a second.

    Args:
        epsilon: in nats, > 0.
        delta: in [1e-12, 1).
        rounds: number of releases, at least 1.
    """
    check.positive(epsilon=epsilon)
    check.count(rounds=rounds)
    _check_delta(delta)
    exact = gaussian.mu_from_epsilon(epsilon=epsilon, delta=delta)
    grid = min(_GRID, epsilon / 1000)
    mu = safe_root(
        lambda mu: _distribution(Cost(mu=mu), grid).get_epsilon_for_delta(delta) - epsilon,
        safe=exact / 1.1,
        unsafe=exact * 1.001,
        tolerance=1e-8,
    )
    return math.sqrt(rounds) / mu


def _check_delta(delta: float) -> None:
    check.open_unit(delta=delta)
    if delta < _SMALLEST_DELTA:
        raise ValueError(
            f"delta={delta} is below {_SMALLEST_DELTA}, where privacy loss distributions drown in rounding; "
            "use the exact or the joint accountant."
        )


def _distribution(cost: Cost, grid: float) -> "PrivacyLossDistribution":
    from dp_accounting.pld import privacy_loss_distribution as pld

    spacing = _spacing(cost, grid)
    _refuse_large(cost, spacing)
    composed = pld.identity(value_discretization_interval=spacing)
    if cost.mu > 0:
        composed = pld.from_gaussian_mechanism(1 / cost.mu, value_discretization_interval=spacing)
    for epsilon, times in cost.pure:
        composed = composed.compose(_randomized_response(epsilon, spacing).self_compose(times))
    return composed


def _randomized_response(epsilon: float, spacing: float) -> "PrivacyLossDistribution":
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    steps = math.ceil(epsilon / spacing * (1 - 1e-12))
    truthful = 1 / (1 + math.exp(-steps * spacing))
    masses = {steps: truthful, -steps: 1 - truthful}
    return PrivacyLossDistribution.create_from_rounded_probability(masses, 0.0, spacing)


def _spacing(cost: Cost, grid: float) -> float:
    if not cost.pure:
        return grid
    smallest = cost.pure[0][0]
    return smallest / math.ceil(smallest / grid)


def _refuse_large(cost: Cost, spacing: float) -> None:
    span = 2 * _TAIL * cost.mu + sum(2 * epsilon * times for epsilon, times in cost.pure)
    if span / spacing > _POINTS:
        raise ValueError(
            f"privacy losses over {span:.3g} nats in steps of {spacing:.3g} need more than {_POINTS:,} grid "
            "points; use the exact or the joint accountant, or a coarser grid."
        )
