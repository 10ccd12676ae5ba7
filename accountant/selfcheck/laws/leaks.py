"""What leaves although no noise is missing: a private count in the noise scale, a private encoder."""

import math

from scipy import special

from accountant import check
from accountant.selfcheck.registry import law


@law("delta_at_eps1", "delta", "tv")
def noise_scale(*, n: int, n_prime: int, d_times_T: int, epsilon: float | None = None) -> float:
    r"""Noise of scale 1/n against 1/n': delta at epsilon, whatever the data; epsilon is 0 for the total variation.

    The log ratio of two centred normal laws is linear in the squared norm, which is chi-square with ``dT`` degrees of
    freedom: both probabilities are exact. The worse of the two directions counts.
    """
    check.count(n=n, n_prime=n_prime, d_times_T=d_times_T)
    at = 0.0 if epsilon is None else float(epsilon)
    return max(_exceeding(1 / n, 1 / n_prime, d_times_T, at), _exceeding(1 / n_prime, 1 / n, d_times_T, at))


@law("delta_at_eps1", "delta", "tv")
def noise_scale_of_rounds(*, n: int, n_prime: int, d: int, T: int, epsilon: float | None = None) -> float:
    return noise_scale(n=n, n_prime=n_prime, d_times_T=d * T, epsilon=epsilon)


def _exceeding(std: float, other: float, degrees: int, epsilon: float) -> float:
    """Return P(loss > epsilon) - e^epsilon Q(loss > epsilon) of N(0, std^2 I) against N(0, other^2 I)."""
    slope = 1 / other**2 - 1 / std**2
    edge = 2 * (epsilon - degrees * math.log(other / std)) / slope  # of the squared norm
    if slope > 0:
        here, there = (special.chdtrc(degrees, max(edge, 0.0) / scale**2) for scale in (std, other))
    else:
        here, there = (special.chdtr(degrees, max(edge, 0.0) / scale**2) for scale in (std, other))
    return float(here - math.exp(epsilon) * there)


@law("sensitivity_ratio")
def private_encoder(*, n_c: int, other_class: int, encoder: str = "") -> float:
    """How much a class mean moves against the claimed 2R/n_c, when z is x times the sign of the sum of all x.

    ``n_c`` records are +1, those of the other class -1; one of the other class becomes +1.
    """
    check.count(n_c=n_c, other_class=other_class)
    before, after = n_c - other_class, n_c - other_class + 2
    return n_c * abs(_sign(after) - _sign(before)) / 2


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
