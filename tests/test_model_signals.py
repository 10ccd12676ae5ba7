"""What a classifier shows of a record, against other people's code and against plain formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from sklearn.metrics import log_loss

from attacks.model._signals import entropies, hinges, losses, modified_entropies, rescaled_logits

N, C = 50, 5
LOGITS = 3 * np.random.default_rng(0).standard_normal((N, C))
LABELS = np.random.default_rng(1).integers(0, C, N)


def softmax(logits: np.ndarray) -> np.ndarray:
    p = np.exp(logits - logits.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


def test_losses_are_those_of_sklearn():
    each = [log_loss([y], p[None], labels=range(C)) for y, p in zip(LABELS, softmax(LOGITS), strict=True)]
    np.testing.assert_allclose(losses(LOGITS, LABELS), each, rtol=1e-12)


def test_entropies_are_those_of_scipy():
    np.testing.assert_allclose(entropies(LOGITS), stats.entropy(softmax(LOGITS), axis=1), rtol=1e-12)


def test_modified_entropies_are_as_published():
    p = softmax(LOGITS)
    for found, p_C, y in zip(modified_entropies(LOGITS, LABELS), p, LABELS, strict=True):
        others = [c for c in range(C) if c != y]
        wanted = -(1 - p_C[y]) * np.log(p_C[y]) - sum(p_C[c] * np.log(1 - p_C[c]) for c in others)
        assert found == pytest.approx(wanted, rel=1e-10)


def test_rescaled_logits_are_log_odds():
    p = softmax(LOGITS)[np.arange(N), LABELS]
    np.testing.assert_allclose(rescaled_logits(LOGITS, LABELS), np.log(p / (1 - p)), rtol=1e-9)


def test_hinges_are_margins():
    for found, z_C, y in zip(hinges(LOGITS, LABELS), LOGITS, LABELS, strict=True):
        assert found == z_C[y] - max(z for c, z in enumerate(z_C) if c != y)


ALL = [losses, lambda z, y: entropies(z), modified_entropies, rescaled_logits, hinges]


@pytest.mark.parametrize("signal", ALL)
@given(
    logits=hnp.arrays(np.float64, (2, 3, 4), elements=st.floats(-1e4, 1e4)),
    shift=st.floats(-100, 100),
)
def test_a_signal_is_finite_and_does_not_change_when_all_logits_move(signal, logits, shift):
    labels = np.array([0, 3, 1])
    found = signal(logits, labels)
    assert found.shape == (2, 3)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(signal(logits + shift, labels), found, rtol=1e-6, atol=1e-6)


def test_a_confident_model_does_not_make_records_equal():
    logits = np.array([[400.0, 0.0], [500.0, 0.0]])
    assert np.diff(rescaled_logits(logits, np.array([0, 0])))[0] == pytest.approx(100)
    assert np.diff(losses(logits, np.array([1, 1])))[0] == pytest.approx(100)
