r"""Laplace noise composed with itself and with Gaussian noise, at its own cost instead of that of a pure mechanism.

Between neighbours one sensitivity apart, Laplace noise that is ``eps_0``-DP has the privacy loss ``+eps_0`` and
``-eps_0`` with positive probability and anything between with a density. Under the measure halfway between the two
data sets, ``g = sqrt(p q)``, the loss is symmetric: two equal atoms and a uniform density,

.. math:: g = e^{-\epsilon_0/2} \left[ \tfrac12 \delta_{-\epsilon_0} + \tfrac12 \delta_{\epsilon_0}
              + \tfrac14 1_{(-\epsilon_0, \epsilon_0)} \right], \qquad p(l) = e^{l/2} g(l).

Its ``T``-fold convolution has atoms on a lattice and a density that is a polynomial between neighbouring points of the
lattice. Both are kept by their values at Gauss-Legendre nodes; every step adds positive numbers only.

Source: Dong, Roth and Su (2022), Section 3, https://arxiv.org/abs/1905.02383 (composition); the law of the loss
follows from the densities.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from accountant import check, gaussian
from accountant.bracket import safe_root
from accountant.gaussian_array import log_delta_from_mu

_MOST_ROUNDS = 2000  # a few seconds
_PANELS = 200_000
_SAFETY = 1e-10  # relative; above the error of the quadrature
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_VALUES_TO_SERIES = np.linalg.inv(np.polynomial.legendre.legvander(_NODES, len(_NODES) - 1))


@dataclass(frozen=True, eq=False)
class _Halfway:
    """The ``T``-fold privacy loss under the measure halfway between the two data sets, its mass made 1.

    Attributes:
        step: eps_0, spacing of the lattice, whose points run from ``-T`` to ``T`` steps.
        atoms: mass of each lattice point.
        density: value at each node of each lattice interval.
        log_mass: ln of the mass before it was made 1.
    """

    step: float
    atoms: Float[np.ndarray, " P"]
    density: Float[np.ndarray, "I N"]
    log_mass: float

    @property
    def points(self) -> Float[np.ndarray, " P"]:
        """Return the loss at each lattice point, in nats."""
        return self.step * (np.arange(len(self.atoms)) - len(self.atoms) // 2)

    def at(self, loss_Q: Float[np.ndarray, " Q"]) -> Float[np.ndarray, " Q"]:
        """Return the density at any losses inside the lattice."""
        place = loss_Q / self.step + len(self.density) // 2
        interval = np.clip(np.floor(place).astype(int), 0, len(self.density) - 1)
        series = (self.density @ _VALUES_TO_SERIES.T)[interval].T
        return np.maximum(
            np.polynomial.legendre.legval(2 * (place - interval) - 1, series, tensor=False), 0.0
        )


def log_delta(*, epsilon: float, eps0: float, rounds: int = 1, mu: float = 0.0) -> float:
    """Return ln of the delta for which Laplace and Gaussian noise together are (epsilon, delta)-DP.

    Args:
        epsilon: in nats, at least 0.
        eps0: what one round of Laplace noise costs, sensitivity / scale, > 0.
        rounds: rounds of Laplace noise, from 1 to 2000.
        mu: the Gaussian part of all rounds together, at least 0; 0 for none.

    Returns:
        At most 0, to about 1e-11 where delta is a float; -inf where no loss exceeds ``epsilon``.

    >>> round(math.exp(log_delta(epsilon=0.3, eps0=1.0)), 12)
    0.295311910281
    """
    check.non_negative(epsilon=epsilon, mu=mu)
    return _log_delta(epsilon, _composed(eps0, rounds), mu)


def epsilon(*, delta: float, eps0: float, rounds: int = 1, mu: float = 0.0) -> float:
    """Return the smallest epsilon >= 0 for which Laplace and Gaussian noise together are (epsilon, delta)-DP.

    Arguments as in :func:`log_delta`; ``delta`` in (0, 1).

    Returns:
        In nats, at most 2e-10 (relative) above the exact value.

    >>> round(epsilon(delta=1e-5, eps0=1.0, mu=0.5), 8)
    2.91518301
    """
    check.non_negative(mu=mu)
    check.open_unit(delta=delta)
    composed, target = _composed(eps0, rounds), math.log(delta)
    alone = gaussian.epsilon_from_mu(mu=mu, delta=delta) if mu > 0 else 0.0
    if _log_delta(0.0, composed, mu) <= target:
        return 0.0
    root = safe_root(
        lambda eps: _log_delta(eps, composed, mu) - target,
        safe=(alone + rounds * eps0) * (1 + 1e-6),
        unsafe=0.0,
        tolerance=1e-12,
    )
    return max(float(root) * (1 + _SAFETY), alone)


def _composed(eps0: float, rounds: int) -> _Halfway:
    check.positive(eps0=eps0)
    check.count(rounds=rounds)
    if rounds > _MOST_ROUNDS:
        raise ValueError(
            f"rounds={rounds} of Laplace noise are more than {_MOST_ROUNDS}; account them as pure, an upper bound."
        )
    rounds = int(rounds)
    atoms, density = np.zeros(2 * rounds + 1), np.zeros((2 * rounds, len(_NODES)))
    atoms[rounds] = 1.0
    atom, height = 1 / (2 + eps0), 1 / (2 * (2 + eps0))  # of one round, its mass made 1
    before, whole = _running_integrals()
    for _ in range(rounds):
        left, right = np.zeros_like(density), np.zeros_like(density)
        left[1:], right[:-1] = density[:-1], density[1:]
        spread = left @ (whole - before).T + (density @ whole)[:, None] + right @ before.T
        from_atoms = atoms[:-1] + atoms[1:]
        density = atom * (left + right) + height * (eps0 * spread + from_atoms[:, None])
        moved = np.zeros_like(atoms)
        moved[1:] = atom * atoms[:-1]
        moved[:-1] += atom * atoms[1:]
        atoms = moved
    return _Halfway(
        step=eps0, atoms=atoms, density=density, log_mass=rounds * (math.log1p(eps0 / 2) - eps0 / 2)
    )


def _running_integrals() -> tuple[Float[np.ndarray, "N N"], Float[np.ndarray, " N"]]:
    """Return weights of the integral from the left end of a unit interval to each node, and to its right end."""
    series = np.polynomial.legendre.legint(_VALUES_TO_SERIES, lbnd=-1)
    return np.polynomial.legendre.legvander(_NODES, len(_NODES)) @ series / 2, _WEIGHTS / 2


def _log_delta(epsilon: float, composed: _Halfway, mu: float) -> float:
    points = composed.points
    loss, weight = _panels(points[0], points[-1], epsilon, composed.step, mu)
    with np.errstate(divide="ignore"):
        terms = np.concatenate(
            [
                np.log(composed.atoms) + points / 2 + _log_exceeding(epsilon - points, mu),
                np.log(weight * composed.at(loss)) + loss / 2 + _log_exceeding(epsilon - loss, mu),
            ]
        )
    largest = float(terms.max())
    if math.isinf(largest):
        return -math.inf
    return min(composed.log_mass + largest + math.log(np.exp(terms - largest).sum()), 0.0)


def _log_exceeding(left_Q: Float[np.ndarray, " Q"], mu: float) -> Float[np.ndarray, " Q"]:
    """Return ln of the Gaussian part's delta at what is left of epsilon; without one, of ``1 - e^left`` below 0."""
    if mu > 0:
        return log_delta_from_mu(left_Q, mu)
    return np.where(left_Q < 0, np.log(-np.expm1(np.minimum(left_Q, 0.0))), -np.inf)


def _panels(
    low: float, high: float, epsilon: float, step: float, mu: float
) -> tuple[Float[np.ndarray, " Q"], Float[np.ndarray, " Q"]]:
    """Return points and weights of panels that end on the lattice and at ``epsilon``, none wider than the noise."""
    parts = math.ceil(step / min(2.0, mu if mu > 0 else math.inf))
    if (high - low) / step * parts > _PANELS:
        raise ValueError(
            f"Gaussian noise of mu={mu:.3g} next to Laplace losses of up to {high:.3g} nats is too fine to integrate; "
            "account the Laplace part as pure, which is an upper bound."
        )
    edges = np.linspace(low, high, round((high - low) / step) * parts + 1)
    if low < epsilon < high:
        edges = np.unique(np.append(edges, epsilon))
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + _NODES)).ravel(), (half * _WEIGHTS).ravel()
