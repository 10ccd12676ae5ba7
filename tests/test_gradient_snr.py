"""The law of the matched filter: published numbers, simulations, inverses, and ceilings."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from attacks.gradient import _snr


@pytest.mark.parametrize(
    ("batch", "auc"), [(16, 0.9998), (64, 0.960), (128, 0.891), (256, 0.809), (400, 0.757)]
)
def test_the_study_of_fisguard(batch, auc):
    assert _snr.predicted_auc(effective_dimension=390.0, batch_size=batch) == pytest.approx(auc, abs=1e-3)


@pytest.mark.parametrize(
    ("batch", "sigma", "spread"), [(4, 0.0, 0.0), (16, 0.5, 1.0), (8, 0.2, 3.0), (32, 0.0, 2.0)]
)
def test_the_law_is_what_gaussian_gradients_do(batch, sigma, spread):
    rng = np.random.default_rng(batch)
    p, trials = 300, 1500
    spectrum = np.exp(-spread * np.linspace(0, 1, p))
    spectrum /= spectrum.sum()
    g = rng.standard_normal((2, trials, p)) * spectrum**0.5
    others = (
        rng.standard_normal((2, trials, p)) * (np.array([batch - 1, batch])[:, None, None] * spectrum) ** 0.5
    )
    sent = others + sigma * rng.standard_normal((2, trials, p))
    sent[0] += g[0]
    inverse = 1 / ((batch - 0.5) * spectrum + sigma**2)
    scores = (g * inverse * sent).sum(-1) / np.sqrt((g**2 * inverse).sum(-1))
    measured = roc_auc_score(np.repeat([1, 0], trials), scores.ravel())
    law = _snr.auc_of(_snr.snr_squared_of(spectrum, batch_size=batch, noise_std=sigma))
    assert measured == pytest.approx(law, abs=4 * 0.011)


@given(d=st.floats(0.5, 1e5), batch=st.integers(1, 2000), sigma=st.floats(0, 20))
def test_a_flat_spectrum_is_an_effective_dimension(d, batch, sigma):
    whole = max(1, round(d))
    flat = _snr.snr_squared_of(np.full(whole, 1 / whole), batch_size=batch, noise_std=sigma)
    assert flat == pytest.approx(
        _snr.snr_squared(effective_dimension=float(whole), batch_size=batch, sigma=sigma), rel=1e-9
    )


@given(d=st.floats(2, 1e4), batch=st.integers(1, 500), auc=st.floats(0.52, 0.995))
def test_noise_for_an_auc_gives_that_auc(d, batch, auc):
    sigma = _snr.sigma_for_auc(auc=auc, effective_dimension=d, batch_size=batch)
    reached = _snr.predicted_auc(effective_dimension=d, batch_size=batch, sigma=sigma)
    assert reached <= auc + 1e-9
    if sigma > 0:
        assert reached == pytest.approx(auc, abs=1e-9)
        assert _snr.effective_dimension(auc=reached, batch_size=batch, sigma=sigma) == pytest.approx(
            d, rel=1e-5
        )


@given(d=st.floats(1, 1e6), batch=st.integers(1, 500), sigma=st.floats(0.05, 20))
def test_the_law_stays_below_the_ceiling_and_ends_at_it(d, batch, sigma):
    ceiling = _snr.auc_ceiling(sigma=sigma)
    assert _snr.predicted_auc(effective_dimension=d, batch_size=batch, sigma=sigma) <= ceiling + 1e-12
    assert _snr.predicted_auc(effective_dimension=1e15, batch_size=1, sigma=sigma) == pytest.approx(ceiling)
    assert (
        _snr.sigma_for_auc(auc=min(ceiling, 1 - 1e-12)) == pytest.approx(sigma, rel=1e-2)
        or ceiling > 1 - 1e-9
    )


def test_ceilings_of_the_corrections():
    for sigma, wanted in ((0.1, 1.0), (0.25, 0.998), (0.5, 0.921), (1, 0.760), (2, 0.638)):
        assert _snr.auc_ceiling(sigma=float(sigma)) == pytest.approx(wanted, abs=6e-4)
    assert _snr.auc_ceiling(sigma=1.0, chosen_pair=True) == pytest.approx(0.841, abs=5e-4)
    assert _snr.auc_ceiling(sigma=3.0, rounds=9) == pytest.approx(_snr.auc_ceiling(sigma=1.0))
    assert _snr.tpr_ceiling(0.05, sigma=2.0, rounds=4) == pytest.approx(
        norm.cdf(norm.ppf(0.05) + 2), abs=1e-12
    )


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="above the ceiling"):
        _snr.effective_dimension(auc=0.9, batch_size=16, sigma=2.0)
    with pytest.raises(ValueError, match=r"auc=1\.0 must lie above 0\.5 and below 1"):
        _snr.sigma_for_auc(auc=1.0)
    with pytest.raises(ValueError, match="finite numbers of at least 0"):
        _snr.snr_squared_of(np.array([1.0, -1.0]), batch_size=2)
    with pytest.raises(ValueError, match="batch_size"):
        _snr.snr_squared(effective_dimension=1.0, batch_size=0)
    assert _snr.sigma_for_auc(auc=0.9, effective_dimension=10.0, batch_size=400) == 0
    assert math.isclose(_snr.auc_of(0.0), 0.5)
