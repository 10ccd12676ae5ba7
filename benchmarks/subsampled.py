"""Row P17: the noise of DP-SGD, Poisson sampling included."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from accountant import subsampled
from benchmarks.protocol import Limit, Result, agree, cpu_seconds, spread

EPSILON, DELTA = 1.0, 1e-5
CELLS = {(0.01, 1000): 1e-4, (0.1, 100): 1e-4, (0.01, 10_000): 2e-4}  # how far dp-accounting may be off
STANDS = {
    (0.01, 1000),
    (0.1, 100),
}  # at ten thousand steps its grid, coarser than ours, asks for 1e-4 more noise


def calibration() -> list[Result]:
    """P17: the noise multiplier of DP-SGD, against two calibrations over dp-accounting's distributions."""
    return [
        result
        for cell, rel in CELLS.items()
        for result in (
            _row(*cell, "dp-accounting PLD", dp_accounting, rel=rel, must=2.5),
            # its own tolerance is 1e-3 in epsilon; at ours it would take longer
            _row(*cell, "riskcal", riskcal, rel=1e-3, must=7.0),
        )
    ]


def dp_accounting(rate: float, steps: int, sigma: float) -> float:
    """Return dp-accounting's noise multiplier; its bracket, the kindest, is a factor of two around ``sigma``."""
    import dp_accounting as dp
    from dp_accounting import mechanism_calibration

    return mechanism_calibration.calibrate_dp_mechanism(
        dp.pld.PLDAccountant,
        lambda sigma: dp.SelfComposedDpEvent(
            dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)), steps
        ),
        EPSILON,
        DELTA,
        bracket_interval=mechanism_calibration.ExplicitBracketInterval(0.5 * sigma, 2 * sigma),
    )


def riskcal(rate: float, steps: int, sigma: float) -> float:
    """Return riskcal's noise multiplier, searched in the same bracket."""
    accountants, blackbox = map(import_module, ("riskcal.accountants", "riskcal.calibration.blackbox"))
    return blackbox.find_noise_multiplier_for_epsilon_delta(
        accountants.CTDAccountant, rate, steps, EPSILON, DELTA, mu_min=0.5 * sigma, mu_max=2 * sigma
    )


def _row(
    rate: float,
    steps: int,
    name: str,
    calibrate: Callable[[float, int, float], float],
    *,
    rel: float,
    must: float,
) -> Result:
    ours = partial(
        subsampled.sigma_from_epsilon, epsilon=EPSILON, delta=DELTA, sampling_rate=rate, steps=steps
    )
    sigma = ours()
    peer = partial(calibrate, rate, steps, sigma)
    row = partial(
        Result, id="P17", workload=f"DP-SGD sigma, q = {rate:g}, T = {steps:,}", peer=name, unit="x"
    )
    try:
        check, void = agree(sigma, peer(), rel=rel)
    except ImportError:
        return row(**spread([float("nan")]), check="n/a: not installed")
    turns = [cpu_seconds(peer) / cpu_seconds(ours, loops=3) for _ in range(2)]  # the peer takes seconds
    return row(
        **spread(turns),
        check=check,
        void=void,
        must=Limit(must) if (rate, steps) in STANDS else None,
        stretch=Limit(10) if (rate, steps) in STANDS else None,
    )


ROWS = [calibration]
