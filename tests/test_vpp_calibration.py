import math
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfinv

from accountant import gaussian, joint, paper, rdp, sequential
from accountant.groupwise import Allocation
from accountant.selection import scale
from accountant.vpp import SplitCalibration, after_selection, sigma_joint, sigma_ref, sigma_zcdp
from accountant.vpp_comparison import VppCalibration, vpp_calibrations

CODED = partial(rdp.sigma_classic, orders=rdp.VPDR_ORDERS)
DELTA = 1e-5

# epsilon, r, rounds: split with an exact Gaussian -> joint
JOINT_TABLE = """
1 .05  1 3.909 3.793  10 12.362 11.818  20 17.482 16.698  50 27.642 26.389  100 39.091 37.313
1 .1   1 4.107 3.950  10 12.986 11.880  20 18.365 16.742  50 29.038 26.416  100 41.066 37.332
1 .2   1 4.573 4.400  10 14.460 12.136  20 20.450 16.920  50 32.334 26.528  100 45.728 37.411
2 .05  1 2.088 2.031  10 6.602 6.318    20 9.336 8.926    50 14.762 14.104  100 20.876 19.942
2 .1   1 2.191 2.121  10 6.930 6.356    20 9.800 8.952    50 15.496 14.121  100 21.914 19.954
2 .2   1 2.437 2.366  10 7.705 6.512    20 10.896 9.061   50 17.229 14.189  100 24.365 20.002
8 .05  1 .6263 .6151  10 1.981 1.904    20 2.801 2.688    50 4.429 4.247    100 6.263 6.004
8 .1   1 .6552 .6453  10 2.072 1.920    20 2.930 2.700    50 4.633 4.254    100 6.552 6.009
8 .2   1 .7231 .7175  10 2.287 1.989    20 3.234 2.748    50 5.113 4.284    100 7.232 6.030
"""


def joint_rows() -> list[tuple[float, float, int, float, float]]:
    rows = []
    for line in JOINT_TABLE.split("\n"):
        epsilon, split, *cells = map(float, line.split() or ["0", "0"])
        for rounds, apart, together in zip(cells[::3], cells[1::3], cells[2::3], strict=True):
            rows.append((epsilon, split, int(rounds), apart, together))
    return rows


@pytest.mark.parametrize(("epsilon", "split", "rounds", "apart", "together"), joint_rows())
def test_joint_and_split_agree_with_the_published_table(
    epsilon: float, split: float, rounds: int, apart: float, together: float
) -> None:
    budget = {"epsilon": epsilon, "delta": DELTA, "rounds": rounds, "split": split}
    last_digit = 6e-5 if apart < 1 else 6e-4
    assert sigma_ref(SplitCalibration.SPLIT, **budget) == pytest.approx(apart, abs=last_digit)
    assert sigma_ref(SplitCalibration.JOINT, **budget) == pytest.approx(together, abs=last_digit)


# epsilon, T = 20: the authors' sigma, its c1, best Renyi conversion, exact, what the authors' sigma truly spends
@pytest.mark.parametrize(
    ("epsilon", "classic", "c1", "tight", "exact", "spent"),
    [
        (0.5, 43.38, 1.4295, 34.29, 31.45, 0.352),
        (0.9, 24.301, 1.4413, 19.93, 18.365, 0.662),
        (1.0, 21.920, 1.4446, 18.09, 16.684, 0.742),
        (1.8, 12.374, 1.4678, 10.574, 9.800, 1.390),
        (2.0, 11.177, 1.4732, 9.611, 8.917, 1.556),
        (9.0, 2.784, 1.651, 2.584, 2.436, 7.66),
        (10.0, 2.540, 1.6737, 2.368, 2.236, 8.55),
    ],
)
def test_gaussian_noise_of_the_authors_agrees_with_the_published_table(
    epsilon: float, classic: float, c1: float, tight: float, exact: float, spent: float
) -> None:
    budget = {"epsilon": epsilon, "delta": DELTA, "rounds": 20}
    found = CODED(**budget)
    assert found == pytest.approx(classic, abs=6e-3 if classic > 40 else 6e-4)
    assert found / paper.sigma_from_formula(**budget) == pytest.approx(
        c1, abs=1.1e-3 if c1 == 1.651 else 1.1e-4
    )
    assert rdp.sigma_best(**budget) == pytest.approx(tight, abs=6e-3 if tight > 11 else 6e-4)
    assert gaussian.sigma_from_epsilon(**budget) == pytest.approx(exact, abs=6e-3 if exact > 20 else 6e-4)
    mu = gaussian.mu_from_sigma(sigma=found, rounds=20)
    assert gaussian.epsilon_from_mu(mu=mu, delta=DELTA) == pytest.approx(
        spent, abs=6e-3 if spent > 2 else 6e-4
    )


@pytest.mark.parametrize(("epsilon", "target"), [(1.022, 1.0), (2.089, 2.0), (12.17, 10.0)])
def test_the_formula_with_root_two_is_no_renyi_calibration_either(epsilon: float, target: float) -> None:
    sigma = paper.sigma_from_formula(epsilon=target, delta=DELTA, rounds=20, c1=math.sqrt(2))
    mu = gaussian.mu_from_sigma(sigma=sigma, rounds=20)
    assert rdp.epsilon_classic(mu=mu, delta=DELTA, orders=rdp.VPDR_ORDERS) == pytest.approx(epsilon, rel=6e-4)


@pytest.mark.parametrize(("epsilon", "want"), [(1.0, 22.05), (2.0, 11.25)])
def test_joint_renyi_accounting_agrees_with_the_published_values(epsilon: float, want: float) -> None:
    budget = {"epsilon": epsilon, "delta": DELTA, "rounds": 20, "split": 0.1}
    assert sigma_zcdp(**budget, calibrate=CODED) == pytest.approx(want, abs=6e-3)
    assert CODED(epsilon=epsilon, delta=DELTA, rounds=20) < sigma_zcdp(**budget, calibrate=CODED)


@pytest.mark.parametrize(
    ("epsilon", "rounds", "coded", "together"),
    [(1.0, 50, 38.42, 26.42), (10.0, 20, 2.784, 2.250), (8.0, 50, 5.361, 4.254)],
)
def test_the_authors_noise_is_far_above_what_is_needed(
    epsilon: float, rounds: int, coded: float, together: float
) -> None:
    budget = {"epsilon": epsilon, "delta": DELTA, "rounds": rounds, "split": 0.1}
    assert sigma_ref(SplitCalibration.CODED, **budget) == pytest.approx(coded, rel=2e-4)
    assert sigma_ref(SplitCalibration.JOINT, **budget) == pytest.approx(together, rel=2e-4)


@pytest.mark.parametrize(
    ("split", "rounds", "want"),
    [(0.1, 50, 26.416335704678840), (0.2, 50, 26.527571569798299), (0.1, 1, 3.950371207340769)],
)
def test_joint_noise_agrees_with_the_reference_and_never_falls_short(
    split: float, rounds: int, want: float
) -> None:
    found = sigma_ref(SplitCalibration.JOINT, epsilon=1.0, delta=DELTA, rounds=rounds, split=split)
    assert want <= found <= want * (1 + 1e-8)


budgets = st.fixed_dictionaries(
    {
        "epsilon": st.floats(0.05, 20.0),
        "delta": st.floats(-12.0, -2.0).map(lambda power: 10.0**power),
        "rounds": st.integers(1, 200),
        "split": st.floats(0.02, 0.9),
    }
)


def given_budget(budget: dict[str, float]) -> dict[str, Any]:
    return {**budget, "rounds": int(budget["rounds"])}


@settings(max_examples=30, deadline=None)
@given(budgets)
def test_every_calibration_keeps_the_budget_and_joint_is_the_least(budget: dict[str, float]) -> None:
    known = given_budget(budget)
    epsilon, delta, rounds = known["epsilon"], known["delta"], known["rounds"]
    least = sigma_joint(**known)
    for calibrate in (
        partial(sigma_ref, SplitCalibration.SPLIT),
        partial(sigma_ref, SplitCalibration.CODED),
        sigma_zcdp,
    ):
        with suppress(ValueError):  # two of the three refuse what they cannot reach
            sigma = calibrate(**known)
            assert sigma >= least * (1 - 1e-11)
            pure = {known["split"] * epsilon / rounds: rounds}
            assert joint.delta(epsilon=epsilon, mu=math.sqrt(rounds) / sigma, pure=pure) <= delta * (1 + 1e-9)


def test_the_authors_renyi_orders_do_not_reach_a_small_epsilon() -> None:
    with pytest.raises(ValueError, match="at delta=1e-05 is out of reach of orders up to 512"):
        sigma_ref(SplitCalibration.CODED, epsilon=0.002, delta=DELTA, rounds=5, split=0.1)


@settings(max_examples=20)
@given(budgets)
def test_the_split_is_the_linear_one(budget: dict[str, float]) -> None:
    known = given_budget(budget)
    found = sigma_ref(SplitCalibration.SPLIT, **known)
    assert found == sequential.sigma_from_epsilon(selection_share=known.pop("split"), **known)


def test_renyi_accounting_refuses_a_selection_that_spends_it_all() -> None:
    with pytest.raises(ValueError, match=r"split=0\.9 of epsilon=8\.0 over 1 rounds is all that Renyi"):
        sigma_zcdp(epsilon=8.0, delta=DELTA, rounds=1, split=0.9)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_a_split_that_is_none_is_refused(bad: float) -> None:
    budget = {"epsilon": 1.0, "delta": DELTA, "rounds": 2, "split": bad}
    for calibration in SplitCalibration:
        with pytest.raises(ValueError, match="split"):
            sigma_ref(calibration, **budget)
    for calibrate in (sigma_zcdp, after_selection(gaussian.sigma_from_epsilon)):
        with pytest.raises(ValueError, match="split"):
            calibrate(**budget)


def test_what_the_split_reserves_for_the_selection_is_thrown_away() -> None:
    # With delta above 0, noise on all 512 scores together costs far less than a tenth of epsilon = 1.
    noise = scale(k=52, score_bound=1.0, epsilon_total=0.1, rounds=50)
    once = gaussian.mu_from_pure_epsilon(epsilon=1 / noise)
    selecting = math.sqrt(50 * 512) * once
    assert gaussian.epsilon_from_mu(mu=selecting, delta=DELTA) == pytest.approx(0.0093, abs=6e-5)
    sigma = sigma_ref(SplitCalibration.SPLIT, epsilon=1.0, delta=DELTA, rounds=50, split=0.1)
    both = math.hypot(selecting, gaussian.mu_from_sigma(sigma=sigma, rounds=50))
    assert gaussian.epsilon_from_mu(mu=both, delta=DELTA) == pytest.approx(0.9001, abs=6e-5)


def rows(*, epsilon: float = 1.0, delta: float = DELTA, rounds: int = 50) -> dict[str, VppCalibration]:
    found = vpp_calibrations(
        epsilon=epsilon,
        delta=delta,
        rounds=rounds,
        split=0.1,
        allocation=Allocation.of(dim=512, rho=0.1),
        scale=5200.0,
    )
    return {row.reference.method: row for row in found}


def of_whole_vector(epsilon: float, delta: float, mu: float) -> float:
    """Return what 7 rounds cost when Laplace noise is on all 512 scores, which move by H each."""
    shift = 0.1 * epsilon / 7 / (2 * 52)  # H / lambda
    laplace = math.sqrt(8) * float(erfinv(-math.expm1(-shift / 2)))
    return gaussian.epsilon_from_mu(mu=math.hypot(mu, math.sqrt(7 * 512) * laplace), delta=delta)


def test_the_known_selection_needs_the_least_noise() -> None:
    found = rows()
    known = found["joint, Laplace on all scores"].reference
    assert known.sigma == pytest.approx(26.3823, abs=5e-5)
    assert known.true_epsilon == pytest.approx(1.0, abs=1e-9)
    valid = [row.reference.sigma for row in found.values() if row.reference.valid and row.reference.sigma]
    assert min(valid) == known.sigma


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 20.0, 1e5])
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.4])
def test_every_row_tells_the_truth_about_itself(epsilon: float, delta: float) -> None:
    found = rows(epsilon=epsilon, delta=delta, rounds=7)
    least = found["joint"].reference.sigma
    assert least is not None
    assert found["joint"].reference.valid
    pure = {0.1 * epsilon / 7: 7}
    for row in found.values():
        reference = row.reference
        assert row.scale == 5200.0
        if reference.sigma is None:
            assert (row.multipliers, row.note) == (None, reference.reason)
            continue
        assert row.multipliers is not None
        assert math.hypot(*(1 / sigma for sigma in row.multipliers)) == pytest.approx(1 / reference.sigma)
        assert reference.true_epsilon is not None
        mu = 7**0.5 / reference.sigma
        assert gaussian.epsilon_from_mu(mu=mu, delta=delta) <= reference.true_epsilon * (1 + 1e-12)
        known = (joint.epsilon(delta=delta, mu=mu, pure=pure), of_whole_vector(epsilon, delta, mu))
        assert reference.true_epsilon <= min(known) * (1 + 1e-12)
        assert reference.excess_percent == pytest.approx(100 * (reference.sigma / least - 1))
        assert reference.valid == (reference.true_epsilon <= epsilon * (1 + 1e-9))
        assert reference.valid or reference.sigma < least
        assert row.note.startswith("breaks the budget") == (not reference.valid)


def test_notes_say_what_each_method_wastes_or_breaks() -> None:
    found = rows()
    assert (
        found["split, exact"].note == "9.9 % more noise than joint: adds the selection's loss to the noise's"
    )
    assert found["split, RDP as VPDR coded it"].reference.true_epsilon == pytest.approx(0.66260, abs=1e-5)
    assert found["split, RDP as VPDR coded it"].note.startswith("45.5 % more noise than joint: adds")
    assert found["split, RDP best conversion"].note.endswith("and accounts by Renyi divergence")
    assert found["joint RDP"].note == "8.5 % more noise than joint: accounts jointly, but by Renyi divergence"
    assert found["split, formula, c1 = 1"].note.startswith("0.9 % more noise than joint here")
    alone = rows(epsilon=8.0)["split, formula, c1 = 1"]
    assert alone.note == "breaks the budget: the noise alone really costs epsilon 10.76"


def test_noise_that_just_fits_without_a_selection_breaks_with_one() -> None:
    # The formula at 0.9 * 1.123 gives the Gaussian part a little more than 1.123, and too little for both.
    found = rows(epsilon=1.123)["split, formula, c1 = 1"]
    assert found.reference.sigma is not None
    assert found.reference.sigma > gaussian.sigma_from_epsilon(epsilon=1.123, delta=DELTA, rounds=50)
    assert found.note == "breaks the budget: with the selection it may cost epsilon 1.12307"


def test_a_row_is_plain_values() -> None:
    plain = rows()["joint"].to_dict()
    assert list(plain) == [
        "method",
        "sigma_ref",
        "sigma_A",
        "sigma_B",
        "lambda",
        "excess_percent",
        "true_epsilon",
        "valid",
        "reason",
        "note",
    ]
    assert (plain["sigma_A"], plain["sigma_B"]) == pytest.approx((30.53595, 52.66233), abs=1e-5)
    nothing = rows(epsilon=0.02)["split, RDP as VPDR coded it"].to_dict()
    assert (nothing["sigma_ref"], nothing["sigma_A"], nothing["lambda"]) == (None, None, 5200.0)


def test_pld_agrees_with_the_exact_split() -> None:
    pytest.importorskip("dp_accounting")
    *_, exact, pld = (
        row.reference
        for row in vpp_calibrations(
            epsilon=1.0,
            delta=DELTA,
            rounds=50,
            split=0.1,
            allocation=Allocation(sizes=(1, 1)),
            scale=1.0,
            with_pld=True,
        )
        if row.reference.method in ("split, exact", "split, PLD")
    )
    assert pld.sigma == pytest.approx(exact.sigma, rel=1e-6)
