r"""Renyi divergence of one step of DP-SGD: Gaussian noise on a Poisson sample of the records.

With noise multiplier ``sigma`` and sampling rate ``q``, the presence of one record is hidden by the pair
``(1 - q) N(0, sigma^2) + q N(1, sigma^2)`` against ``N(0, sigma^2)``. With their likelihood ratio
``1 + x = e^l = 1 - q + q e^t``, where ``t = z / sigma - 1 / (2 sigma^2)``,

.. math:: (\alpha - 1) D_\alpha = \ln E_{z \sim N(0, 1)} [e^{\alpha l}]
    = \ln (1 + E [(1 + x)^\alpha - 1 - \alpha x]).

The expectation is integrated at any real order between the points where ``alpha l - z^2 / 2`` turns; the right
form, whose integrand is never negative, keeps small divergences exact. The opposite direction costs no more.

Source: Mironov, Talwar and Zhang (2019), Theorems 4 and 5, https://arxiv.org/abs/1908.10530
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from accountant import check
from accountant.contract import Relation
from accountant.rdp import _penalty
from accountant.subsampled_pair import check_step, shift

Floats = NDArray[np.float64]

_DROP = 80.0  # nats below the peak at which the integrand ends
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_BENDS = 17  # edges of panels across the bend where sampling sets in
_FAR = 1e12  # beyond this many standard deviations a double cannot place a panel
_SMALL = 0.01  # alpha |x| below which the excess is summed as a series
_SAFETY = 1e-9  # relative; the quadrature errs by less than 1e-11
_TINY = 1e-30  # of the integral, which ends _DROP nats down


def divergence(
    *, order: float | Sequence[float] | Floats, noise_multiplier: float, sampling_rate: float
) -> Floats:
    """Return the Renyi divergence of one step when one record is added or removed.

    Args:
        order: any real orders > 1, of any shape.
        noise_multiplier: noise standard deviation / clip norm, > 0.
        sampling_rate: probability in (0, 1] with which a record joins the step.

    Returns:
        In nats, >= 0, of the shape of ``order``, to a relative error below 1e-9; at rate 1 it is
        ``order / (2 sigma^2)``, which it never exceeds. inf where that overflows.

    Raises:
        ValueError: an order is not finite and above 1, or a parameter is outside its range.

    >>> divergence(order=[2.0, 2.5], noise_multiplier=1.0, sampling_rate=0.1).round(6).tolist()
    [0.017037, 0.023504]
    """
    check_step(noise_multiplier=noise_multiplier, sampling_rate=sampling_rate)
    orders = np.asarray(order, dtype=np.float64)
    if not np.all((orders > 1) & np.isfinite(orders)):
        raise ValueError(f"order={order} must be finite and above 1.")
    step = _Step(float(noise_multiplier), float(sampling_rate))
    with np.errstate(over="ignore", divide="ignore"):
        whole = orders / 2 / step.sigma / step.sigma
    found = np.array(whole)
    near = (orders < _FAR * step.sigma) & (whole < _FAR * _FAR)
    if step.q < 1 and near.any():
        found[near] = np.minimum(_integrated(orders[near], step), whole[near])
    return found


def epsilon(
    *,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    delta: float,
    relation: Relation = Relation.ADD_REMOVE,
) -> float:
    """Return the epsilon of DP-SGD by the best conversion at the best order.

    Args:
        noise_multiplier: noise standard deviation / clip norm, > 0.
        sampling_rate: probability in (0, 1] with which a record joins a step.
        steps: number of steps, at least 1.
        delta: in (0, 1).
        relation: which data sets are neighbours; to replace a record costs as much as to remove and add one.

    Returns:
        In nats, >= 0, never below the truth; inf if it overflows.

    >>> round(epsilon(noise_multiplier=1.0, sampling_rate=0.01, steps=1000, delta=1e-5), 4)
    2.1013
    """
    check.open_unit(delta=delta)
    spent = _spent(noise_multiplier, sampling_rate, steps, relation)

    def cost(order: Floats) -> Floats:
        return spent(order) + np.array([_penalty(value, delta) for value in order.tolist()])

    return max(0.0, _smallest(cost))


def log_delta(
    *,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    epsilon: float,
    relation: Relation = Relation.ADD_REMOVE,
) -> float:
    """Return ln of the delta of DP-SGD at an epsilon >= 0; at most 0, arguments as in :func:`epsilon`."""
    check.non_negative(epsilon=epsilon)
    spent = _spent(noise_multiplier, sampling_rate, steps, relation)

    def cost(order: Floats) -> Floats:
        return (order - 1) * (spent(order) + np.log1p(-1 / order) - epsilon) - np.log(order)

    return min(0.0, _smallest(cost))


def _spent(
    noise_multiplier: float, sampling_rate: float, steps: int, relation: Relation
) -> Callable[[Floats], Floats]:
    """Return the Renyi curve of all steps, rounded up."""
    check_step(noise_multiplier=noise_multiplier, sampling_rate=sampling_rate)
    check.count(steps=steps)

    def one(order: Floats) -> Floats:
        return divergence(order=order, noise_multiplier=noise_multiplier, sampling_rate=sampling_rate)

    def replaced(order: Floats) -> Floats:
        # remove, then add: the weak triangle inequality of Mironov (2017), Proposition 11, at p = q = 2
        through = (order - 0.5) / (order - 1) * one(2 * order) + one(2 * order - 1)
        return np.minimum(through, 2 * order / noise_multiplier / noise_multiplier)

    single = one if shift(relation) == 1 else replaced
    return lambda order: steps * (single(order) * (1 + _SAFETY) + _TINY / (order - 1))


def _smallest(cost: Callable[[Floats], Floats]) -> float:
    """Return the smallest cost over orders above 1, on a grid of ln(order - 1) that is refined twice."""
    logs = np.linspace(-25.0, 35.0, 61)
    best = math.inf
    for _ in range(4):
        costs = cost(1 + np.exp(logs))
        at = int(np.argmin(costs))
        best = min(best, float(costs[at]))
        width = logs[1] - logs[0]
        logs = np.linspace(logs[at] - width, logs[at] + width, 13)
    return best


class _Step(NamedTuple):
    sigma: float
    q: float

    @property
    def bend(self) -> float:
        """Where the sampled and the unsampled term are equal, in standard deviations."""
        return self.sigma * (math.log1p(-self.q) - math.log(self.q)) + 0.5 / self.sigma

    def exponent(self, z: Floats) -> Floats:
        return z / self.sigma - 0.5 / self.sigma**2

    def loss(self, z: Floats) -> Floats:
        t = self.exponent(z)
        near = np.log1p(self.q * np.expm1(np.minimum(t, 1.0)))
        return np.where(t < 1, near, np.logaddexp(math.log1p(-self.q), math.log(self.q) + t))


def _integrated(orders: Floats, step: _Step) -> Floats:
    which, left, right = _panels(orders, step)
    half = (right - left)[:, None] / 2
    z = (left + right)[:, None] / 2 + half * _NODES
    weights = half * _WEIGHTS / math.sqrt(2 * math.pi)
    order, loss, starts = orders[which, None], step.loss(z), np.searchsorted(which, np.arange(len(orders)))

    height = order * loss - z * z / 2
    peak = np.maximum.reduceat(height.max(axis=1), starts)
    sums = np.add.reduceat((weights * np.exp(height - peak[which, None])).sum(axis=1), starts)
    log_mean = peak + np.log(sums)
    small = log_mean < 0.1
    if small.any():
        rows = small[which]
        excess = np.zeros(len(which))
        excess[rows] = (weights[rows] * _excess(order[rows], z[rows], loss[rows], step)).sum(axis=1)
        log_mean = np.where(small, np.log1p(np.add.reduceat(excess, starts)), log_mean)
    return np.maximum(log_mean, 0.0) / (orders - 1)


def _excess(order: Floats, z: Floats, loss: Floats, step: _Step) -> Floats:
    """Return ``((1 + x)^order - 1 - order x) e^(-z^2 / 2)``, never negative."""
    more, t, bell = order - 1, step.exponent(z), -z * z / 2
    x = step.q * np.expm1(np.minimum(t, 30.0))
    tail = np.ones_like(x)
    for k in range(9, 2, -1):
        tail = 1 + tail * x * (order - k + 1) / k
    series = np.exp(bell) * order * more / 2 * x * x * tail
    raised = np.exp(loss + bell) * np.expm1(np.minimum(more * loss, 1.0))
    raised = np.where(more * loss < 1, raised, np.exp(order * loss + bell) - np.exp(loss + bell))
    direct = raised - more * step.q * (np.exp(t + bell) - np.exp(bell))
    return np.where(order * np.abs(x) < _SMALL, series, direct)


def _panels(orders: Floats, step: _Step) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Return panels that cover the integrand: index of the order (ascending), left and right end."""
    peaks, ends = _segments(orders, step)
    low, high = np.minimum(peaks, ends)[..., None], np.maximum(peaks, ends)[..., None]
    reach = np.linspace(-40 - np.log(orders), np.full_like(orders, 40.0), _BENDS, axis=-1)
    inner = step.bend + step.sigma * reach
    edges = np.concatenate([low, np.clip(inner[:, None, :], low, high), high], axis=-1)
    which, segment, panel = np.nonzero(np.diff(edges) > 0)
    return which, edges[which, segment, panel], edges[which, segment, panel + 1]


def _segments(orders: Floats, step: _Step) -> tuple[Floats, Floats]:
    """Return up to four stretches on which the integrand falls from a peak to its end, shape (orders, 4)."""
    steepest = orders / step.sigma

    def rising(z: Floats) -> Floats:
        return steepest * expit((z - step.bend) / step.sigma) - z

    root = np.sqrt(np.maximum(1 - 4 * step.sigma**2 / orders, 0.0))
    turn = np.where(root > 0, 2 * np.log1p(root) + np.log(orders / (4 * step.sigma**2)), 0.0)
    before = np.clip(step.bend - step.sigma * turn, 0.0, steepest)
    after = np.clip(step.bend + step.sigma * turn, 0.0, steepest)
    first = _switch(lambda z: rising(z) <= 0, np.zeros_like(orders), before)
    valley = _switch(lambda z: rising(z) >= 0, before, after)
    second = _switch(lambda z: rising(z) <= 0, after, steepest)

    slack = np.maximum(steepest - second, 0.0)
    outer_left = -np.sqrt(first**2 + 2 * _DROP)
    outer_right = second + slack + np.sqrt(slack**2 + 2 * _DROP)
    peaks = np.stack([first, first, second, second], axis=-1)
    limits = np.stack([outer_left, valley, valley, outer_right], axis=-1)

    def height(z: Floats) -> Floats:
        return orders[:, None] * step.loss(z) - z * z / 2

    floor = height(peaks).max(axis=-1, keepdims=True) - _DROP
    return peaks, _switch(lambda z: height(z) < floor, peaks, limits)


def _switch(condition: Callable[[Floats], NDArray[np.bool_]], start: Floats, end: Floats) -> Floats:
    """Return where a condition turns true on the way from start to end; end if it never does."""
    for _ in range(60):
        middle = (start + end) / 2
        met = condition(middle)
        start, end = np.where(met, start, middle), np.where(met, middle, end)
    return end
