"""What leaves although no noise is missing: a private count in the noise scale, a private encoder."""

from accountant.counterexamples.e03_noise_scale import noise_scale_leak
from accountant.counterexamples.e07_encoder import encoder_factor, encoder_ratio
from accountant.selfcheck.numbers import number, whole
from accountant.selfcheck.registry import law


@law("delta_at_eps1", "delta", "tv")
def noise_scale(*, n: int, n_prime: int, d_times_T: int, epsilon: object = 0.0) -> float:
    """Return delta of noise whose scale follows the count; at epsilon 0 it is the total variation."""
    return noise_scale_leak(n=n, n_prime=n_prime, dim_times_rounds=d_times_T, epsilon=number(epsilon))


@law("delta_at_eps1", "delta", "tv")
def noise_scale_of_rounds(*, n: int, n_prime: int, d: int, T: int = 1, epsilon: object = 0.0) -> float:
    return noise_scale(n=n, n_prime=n_prime, d_times_T=d * T, epsilon=epsilon)


@law("sensitivity_ratio", "mu_factor")
def private_encoder(*, n_c: int, other_class: int, encoder: str = "", R: float = 1.0) -> float:
    """Return it for the encoder that turns all vectors round with the sign of the sum; the ratio does not know R."""
    return encoder_ratio(n_c=n_c, other_class=other_class)


@law("mu_factor", "sensitivity_ratio")
def private_encoder_of_all_classes(*, counts: list) -> float:
    return encoder_factor([whole(count) for count in counts])


@law("mu_factor", "sensitivity_ratio")
def private_encoder_of_equal_classes(*, classes: int, n_c: int) -> float:
    return encoder_factor([n_c] * classes)
