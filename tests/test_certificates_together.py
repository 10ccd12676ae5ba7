"""All certificates side by side: each named, none missing without a reason, none fooled by how ties are broken."""

import math

import numpy as np
import pytest

from attacks.statistics.certify import Certificate, NoCertificate, bayesian, epsilon_bayesian
from attacks.statistics.certify.together import certificates, first_certificate
from attacks.statistics.confusion import Confusion

DELTA = 1e-5
GAUSSIAN = {"Gaussian DP with Clopper-Pearson", "normal scores", "one run, Gaussian DP"}
ONE_RUN = {"one run", "one run, Gaussian DP"}


def drawn(n: int = 400, mu: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(mu / 2, 1, n), rng.normal(-mu / 2, 1, n)


def missing(found: tuple[Certificate | NoCertificate, ...]) -> dict[str, str]:
    return {one.method: one.reason for one in found if isinstance(one, NoCertificate)}


def low(found: tuple[Certificate | NoCertificate, ...]) -> dict[str, float]:
    return {one.method: one.epsilon_low for one in found if isinstance(one, Certificate)}


def test_six_methods_of_different_names_say_what_they_assume() -> None:
    found = certificates(*drawn(), delta=DELTA)
    assert not missing(found)
    assert len(low(found)) == 6
    assumed = {one.method: " ".join(one.assumptions) for one in found if isinstance(one, Certificate)}
    assert {name for name, words in assumed.items() if "trade-off curve is Gaussian" in words} == GAUSSIAN
    assert {name for name, words in assumed.items() if "coin" in words} == ONE_RUN
    assert {name for name, words in assumed.items() if "independent" in words} == set(assumed) - ONE_RUN


def test_the_first_is_the_one_that_is_printed_alone() -> None:
    every = certificates(*drawn(), delta=DELTA)
    assert first_certificate(*drawn(), delta=DELTA) == every[0]
    other = first_certificate(*drawn(), delta=DELTA, not_gaussian="no noise")
    assert other is not None
    assert other.method == "Clopper-Pearson"


def test_without_gaussian_noise_what_assumes_it_gives_its_reason() -> None:
    found = certificates(*drawn(), delta=DELTA, not_gaussian="no Gaussian noise was added")
    assert missing(found) == dict.fromkeys(GAUSSIAN, "no Gaussian noise was added")


@pytest.mark.parametrize("empty", [0, 1])
def test_canaries_that_all_have_one_answer_leave_the_one_run_limits(empty: int) -> None:
    scores = list(drawn())
    scores[empty] = np.zeros(0)
    found = certificates(*scores, delta=DELTA)
    assert set(low(found)) == ONE_RUN
    assert all("canaries" in reason or "distance" in reason for reason in missing(found).values())


def test_too_few_scores_for_a_deviation_are_a_reason_and_no_error() -> None:
    found = certificates([1.0], [-1.0], delta=DELTA)
    assert set(missing(found)) == {"normal scores"}
    assert "no standard deviation" in missing(found)["normal scores"]


def test_a_delta_of_zero_leaves_what_needs_none() -> None:
    assert set(missing(certificates(*drawn(), delta=0.0))) == GAUSSIAN


@pytest.mark.parametrize("bad", [{"delta": -0.1}, {"delta": 1.0}, {"level": 1.0}])
def test_impossible_terms_are_an_error_and_no_reason(bad: dict[str, float]) -> None:
    terms = {"delta": DELTA, "level": 0.95} | bad
    with pytest.raises(ValueError, match=next(iter(bad))):
        certificates(*drawn(), delta=terms["delta"], level=terms["level"])


def test_scores_that_are_not_numbers_are_an_error() -> None:
    with pytest.raises(ValueError, match="as_planted"):
        certificates([1.0, math.nan], [0.0], delta=DELTA)


def test_tied_scores_certify_nothing_where_nothing_leaks() -> None:
    """Which of equally sure guesses count must not depend on the answers: here every one says "as planted"."""
    found = certificates(np.full(200, 0.3), np.full(200, 0.3), delta=DELTA)
    assert {name: low(found)[name] for name in ONE_RUN} == dict.fromkeys(ONE_RUN, 0.0)
    levels = np.random.default_rng(1).choice([-0.2, 0.1, 0.3], 400)
    assert low(certificates(levels[:200], levels[200:], delta=DELTA))["one run"] == 0.0


# ---------------------------------------------------------------------- the one-sided Bayesian limit


def point(tp: int, m: int, fp: int, n: int) -> Confusion:
    return Confusion(
        true_positives=tp, n_members=m, false_positives=fp, n_non_members=n, threshold_source="0"
    )


def test_the_one_sided_limit_leaves_its_share_of_the_posterior_on_its_side() -> None:
    rng = np.random.default_rng(11)
    limit = epsilon_bayesian(point(70, 100, 40, 120), delta=0.01, level=0.9, one_sided=True).epsilon_low
    fnr, fpr = rng.beta(30.5, 70.5, 400_000), rng.beta(40.5, 80.5, 400_000)
    inside = (math.exp(limit) * fnr + fpr >= 0.99) & (math.exp(limit) * fpr + fnr >= 0.99)
    assert limit > 0
    assert np.mean(inside) == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / 400_000))


def test_an_attack_that_is_worse_than_guessing_is_no_leakage_on_one_side_only() -> None:
    worse = point(20, 100, 80, 100)
    assert epsilon_bayesian(worse, delta=DELTA, one_sided=True).epsilon_low == 0
    assert epsilon_bayesian(worse, delta=DELTA).epsilon_low > 1


def test_the_two_limits_agree_where_the_leak_is_clear_and_say_which_they_are() -> None:
    clear = point(95, 100, 5, 100)
    one, two = (epsilon_bayesian(clear, delta=DELTA, one_sided=side) for side in (True, False))
    assert one.epsilon_low == pytest.approx(two.epsilon_low, abs=1e-6)
    assert (one.method, two.method) == (bayesian.ONE_SIDED, bayesian.TWO_SIDED)
    assert "worse than guessing" in " ".join(one.assumptions)
