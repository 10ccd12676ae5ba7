r"""How much Gaussian noise keeps a budget when a selection is released beside it.

Three ways to price both together, each an upper bound of the truth; the one that asks for the least noise wins:

* the pure part as randomised responses next to a Gaussian (:mod:`accountant.joint`),
* everything as one Gaussian, Laplace noise on scores as a whole vector where that costs less:
  ``T / sigma^2 = mu(epsilon, delta)^2 - mu_selection^2``,
* Renyi divergence: at every order ``a`` with conversion penalty ``p(a)``,
  ``T / sigma^2 = 2 (epsilon - p(a) - D_selection(a)) / a``. Asked only where the first two bound a mechanism from
  above by a Gaussian.

Source: docs of :mod:`accountant.joint`; Dong, Roth and Su (2022), Corollary 3.3, https://arxiv.org/abs/1905.02383;
Canonne, Kamath and Steinke (2020), Proposition 12, https://arxiv.org/abs/2004.00010
"""

import math

from accountant import check, gaussian
from accountant.accountants import gaussian_mu, smallest
from accountant.cost import Cost, total
from accountant.events import Composed, Event, Gaussian, Leaf, Repeated

_SAFETY = 1e-12  # relative; the first step by which noise that just misses the budget is raised


def sigma_beside(
    selection: Leaf | None, *, epsilon: float, delta: float, rounds: int, selections: int | None = None
) -> float:
    """Return the smallest known noise multiplier of ``rounds`` Gaussian releases beside a selection.

    Args:
        selection: one run of the selection, of any kind; None for none.
        epsilon: what selection and releases may cost together, in nats, > 0.
        delta: together, in (0, 1).
        rounds: Gaussian releases on the same data, at least 1.
        selections: how often the selection runs, at least 1; once per round by default.

    Returns:
        Noise standard deviation / l2 sensitivity of one release; for groups, that of the equivalent single
        Gaussian. On the safe side: :func:`accountant.accountants.smallest` of all of it is at most ``epsilon``.

    Raises:
        ValueError: the selection alone spends the whole budget, or releases something without noise.
        UnsupportedEventError: the cost of the selection is not known.

    >>> from accountant.events import GumbelTopK, LaplaceTopK
    >>> laplace = LaplaceTopK(k=52, dim=512, score_bound=1.0, scale=52000.0)
    >>> round(sigma_beside(laplace, epsilon=1.0, delta=1e-5, rounds=50), 4)
    26.3823
    >>> gumbel = GumbelTopK(k=52, dim=512, score_bound=1.0, scale=571.0)
    >>> round(sigma_beside(gumbel, epsilon=1.0, delta=1e-5, rounds=50, selections=1), 4)
    26.4257
    """
    check.positive(epsilon=epsilon)
    check.open_unit(delta=delta)
    check.count(rounds=rounds)
    if selection is None:
        return gaussian.sigma_from_epsilon(epsilon=epsilon, delta=delta, rounds=rounds)
    beside = Repeated(event=selection, count=rounds if selections is None else selections)
    mu = mu_beside(beside, epsilon=epsilon, delta=delta)
    return _verified(math.sqrt(rounds) / mu, beside, epsilon=epsilon, delta=delta, rounds=rounds)


def mu_beside(event: Event, *, epsilon: float, delta: float) -> float:
    """Return the largest known mu of Gaussian noise that keeps a budget beside an event.

    Args:
        event: everything else that is released, whole.
        epsilon: in nats, > 0.
        delta: in (0, 1).

    Raises:
        ValueError: the event alone spends the whole budget, or releases something without noise.
    """
    cost = total(event)
    if cost.unbounded is not None:
        raise ValueError(f"no Gaussian noise makes up for a part {cost.unbounded}; give that part noise.")
    left = cost.delta_left(delta)
    squares = (
        [
            _joint(cost, epsilon, left),
            _as_gaussian(event, epsilon, left),
            0.0 if cost.tight else _renyi(event, epsilon, left),
        ]
        if left > 0
        else [0.0]
    )
    if max(squares) <= 0:
        raise ValueError(
            f"epsilon={epsilon}, delta={delta} leave nothing for the Gaussian noise: the selection alone spends them; "
            "give it more noise, select less often, or raise epsilon."
        )
    return math.sqrt(max(squares))


def _joint(cost: Cost, epsilon: float, delta: float) -> float:
    """Return mu^2 left for more Gaussian noise when pure parts count as randomised responses; 0 or less for none."""
    from accountant import joint

    try:
        allowed = joint.mu_from_epsilon(epsilon=epsilon, delta=delta, pure=dict(cost.pure))
    except ValueError:  # the pure part spends it all, or there are too many kinds of it
        return 0.0
    return (allowed - cost.mu) * (allowed + cost.mu)


def _as_gaussian(event: Event, epsilon: float, delta: float) -> float:
    allowed, spent = gaussian.mu_from_epsilon(epsilon=epsilon, delta=delta), gaussian_mu(event)
    return (allowed - spent) * (allowed + spent)


def _renyi(event: Event, epsilon: float, delta: float) -> float:
    """Return mu^2 left by Renyi divergence at the best order; every order gives a valid bound."""
    import numpy as np

    from accountant import renyi

    below, above, found = 1e-6, 1e8, 0.0
    for points in (141, 21, 21, 21):
        less_one = np.geomspace(below, above, points)
        orders = 1 + less_one
        penalty = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / less_one
        left = 2 * (epsilon - penalty - renyi.divergence(event, orders)) / orders
        best = int(np.argmax(left))
        found = max(found, float(left[best]))
        below, above = less_one[max(best - 1, 0)], less_one[min(best + 1, points - 1)]
    return found


def _verified(sigma: float, beside: Event, *, epsilon: float, delta: float, rounds: int) -> float:
    """Return a noise multiplier for which the accountant itself finds no more than epsilon."""
    step = _SAFETY
    while (
        smallest(
            Composed(events=(beside, Repeated(event=Gaussian(noise_multiplier=sigma), count=rounds))),
            delta=delta,
        ).epsilon
        > epsilon
    ):
        sigma *= 1 + step
        step *= 2
    return sigma
