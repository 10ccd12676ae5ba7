"""Evidence as a Dirichlet distribution: split of the entropy, ranges, and the loss against SciPy and torch."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from privkit.evidential import (
    annealed,
    divergence_from_uniform,
    evidence,
    evidential_loss,
    largest_epistemic,
    uncertainty,
)


def concentrations(least: float = 1.0, most: float = 1e6) -> st.SearchStrategy[torch.Tensor]:
    shape = st.tuples(st.integers(1, 4), st.integers(2, 12))
    return shape.flatmap(lambda s: arrays(np.float64, s, elements=st.floats(least, most))).map(
        torch.from_numpy
    )


def by_scipy(alpha_C: np.ndarray) -> tuple[float, float]:
    """Return total and aleatoric uncertainty of one record, class by class."""
    whole, total, aleatoric = math.fsum(alpha_C), 0.0, 0.0
    for a in alpha_C:
        p = a / whole
        total -= p * math.log(p)
        aleatoric -= p * float(special.digamma(a + 1) - special.digamma(whole + 1))
    return total, aleatoric


@given(concentrations(least=1e-3))
def test_total_uncertainty_is_the_sum_of_both_kinds_and_each_is_in_its_range(alpha):
    total, aleatoric, epistemic = uncertainty(alpha)
    torch.testing.assert_close(total, aleatoric + epistemic, rtol=0, atol=1e-10)
    assert (epistemic >= 0).all()
    assert (aleatoric >= 0).all()
    assert (total <= math.log(alpha.shape[-1]) + 1e-12).all()
    assert (aleatoric <= math.log(alpha.shape[-1]) + 1e-12).all()
    for row, u, v in zip(alpha.numpy(), total.tolist(), aleatoric.tolist(), strict=True):
        assert (u, v) == pytest.approx(by_scipy(row), rel=1e-9, abs=1e-9)


@given(concentrations(most=1e9))
def test_no_evidence_is_as_uncertain_as_it_gets(alpha):
    most = largest_epistemic(alpha.shape[-1])
    assert (uncertainty(alpha).epistemic <= most + 1e-10).all()
    assert most < 1 - np.euler_gamma


@pytest.mark.parametrize("prior", [1.0, 0.5, 3.0])
@pytest.mark.parametrize("num_classes", [2, 9, 10, 14, 100])
def test_zero_evidence_has_the_closed_form(num_classes, prior):
    found = uncertainty(torch.full((num_classes,), prior, dtype=torch.float64))
    assert found.total.item() == pytest.approx(math.log(num_classes), abs=1e-12)
    assert found.epistemic.item() == pytest.approx(largest_epistemic(num_classes, prior=prior), abs=1e-10)
    if prior == 1.0:
        psi = special.digamma
        wanted = math.log(num_classes) - psi(num_classes + 1) + psi(2)
        assert largest_epistemic(num_classes) == pytest.approx(wanted, abs=1e-15)


def test_one_class_is_certain():
    assert largest_epistemic(1) == 0.0
    assert uncertainty(torch.tensor([[2.0]])).epistemic.item() == 0.0


def test_aleatoric_uncertainty_is_the_expected_entropy_of_draws():
    alpha = np.array([1.0, 2.5, 7.0])
    drawn = np.random.default_rng(0).dirichlet(alpha, 200_000)
    wanted = float(stats.entropy(drawn, axis=1).mean())
    assert uncertainty(torch.from_numpy(alpha)).aleatoric.item() == pytest.approx(wanted, abs=2e-3)


@given(concentrations(least=1.0, most=1e3))
def test_the_divergence_is_torchs(alpha):
    one = torch.distributions.Dirichlet(alpha)
    uniform = torch.distributions.Dirichlet(torch.ones_like(alpha))
    found = divergence_from_uniform(alpha)
    torch.testing.assert_close(found, torch.distributions.kl_divergence(one, uniform), rtol=1e-8, atol=1e-8)
    assert (found > -1e-8).all()


@given(
    concentrations(least=0.0, most=1e3), st.integers(0, 9), st.floats(0, 1), st.sampled_from([0.5, 1.0, 2.0])
)
def test_the_loss_is_the_reference_record_by_record(e, first, weight, prior):
    y = torch.from_numpy((first + np.arange(len(e))) % e.shape[-1])
    found = evidential_loss(e, y, prior=prior, anneal=weight)
    for row, label, value in zip(e.numpy(), y.tolist(), found.tolist(), strict=True):
        alpha = row + prior
        wrong = np.where(np.arange(len(row)) == label, 0.0, row) + 1
        psi, whole = special.digamma, wrong.sum()
        kl = special.gammaln(whole) - special.gammaln(len(row)) - special.gammaln(wrong).sum()
        kl += ((wrong - 1) * (psi(wrong) - psi(whole))).sum()
        wanted = psi(alpha.sum()) - psi(alpha[label]) + weight * kl
        assert value == pytest.approx(wanted, rel=1e-7, abs=1e-7)


def test_evidence_for_the_own_class_alone_costs_no_divergence():
    """As text, alpha~ = alpha - e_y + 1 is not: 11.2 with a one-hot e_y, 1.06 with the number."""
    e, y = torch.zeros(10, dtype=torch.float64), torch.tensor(3)
    e[3] = 50.0
    with_it, without = (evidential_loss(e, y, anneal=w).item() for w in (1.0, 0.0))
    assert with_it == pytest.approx(without, abs=1e-12)
    alpha, hot = e + 1, torch.nn.functional.one_hot(y, 10)
    assert divergence_from_uniform(alpha - hot + 1).item() == pytest.approx(11.2, abs=0.05)
    assert divergence_from_uniform(alpha - 50 * hot + 1).item() == pytest.approx(1.06, abs=0.02)


@pytest.mark.parametrize("scale", [0.0, 1.0, 50.0, 1e4])
def test_gradients_are_finite_whatever_the_logits(scale):
    logits = torch.linspace(-scale, scale, 12).reshape(3, 4).requires_grad_(True)
    loss = evidential_loss(evidence(logits), torch.tensor([0, 1, 3])).sum()
    (slope,) = torch.autograd.grad(loss, logits)
    assert slope.isfinite().all()


def test_the_gradient_is_that_of_differences():
    logits = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([1, 4])
    assert torch.autograd.gradcheck(
        lambda x: evidential_loss(evidence(x), y, prior=1.5, anneal=0.4), logits.requires_grad_(True)
    )


def test_two_classes_and_what_is_no_number():
    found = uncertainty(torch.tensor([[1.0, 1.0], [1e8, 1.0]], dtype=torch.float64))
    assert found.epistemic[0].item() == pytest.approx(0.1931, abs=5e-5)
    assert found.epistemic[1].item() == pytest.approx(0.0, abs=1e-6)
    assert uncertainty(torch.tensor([math.nan, 1.0])).total.isnan()


def test_the_divergence_grows_to_its_weight():
    rounds = torch.tensor([0.0, 1.0, 5.0, 10.0, 40.0])
    assert annealed(rounds, over=10).tolist() == pytest.approx([0.0, 0.1, 0.5, 1.0, 1.0])
    assert annealed(rounds, over=0).tolist() == [1.0] * 5
