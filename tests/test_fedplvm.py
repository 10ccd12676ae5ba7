"""FedPLVM's own loss against NumPy written record by record; what it shares with FPL is tested there."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from privkit import plug
from privkit.errors import InputError
from privkit.methods import _infonce
from privkit.methods.fedplvm import FedPlvm
from privkit.prototypes.finch import Finch
from privkit.prototypes.kmeans import KMeans
from tests import clustered
from tests.clustered import G


def reference_loss(params: Mapping[str, np.ndarray], client: int, method: FedPlvm) -> float:
    """Return one client's loss, record by record."""
    batch, down = clustered.batch(), clustered.of(client, clustered.answers())
    real = [k for k, label in enumerate(down["labels"]) if label >= 0]
    total = 0.0
    for x, y, weight in zip(*(a[client].numpy() for a in (batch.x, batch.y, batch.weight)), strict=True):
        u = clustered.embedded(params, x[None])[0]
        loss = clustered.cross_entropy(params, u, y)
        own = [k for k in real if down["labels"][k] == y]
        if own:
            cosines = {k: clustered.cosine(u, down["centres"][k]) for k in real}
            s = {k: np.sign(c) * abs(c) ** method.alpha for k, c in cosines.items()}
            mass = {k: np.exp(s[k] / method.temperature) for k in real}
            if method.contrast == "mean_of_logs":
                contrast = -np.mean([np.log(mass[k] / sum(mass.values())) for k in own])
            else:
                contrast = -np.log(sum(mass[k] for k in own) / sum(mass.values()))
            if method.correction == "count":
                correction = abs(sum(s[k] for k in own) - len(own))
            else:
                correction = 2 * (clustered.cosine(u, np.mean(down["centres"][own], axis=0)) - 1) ** 2
            loss += method.weight * float(contrast + correction)
        total += weight * loss
    return float(total)


METHODS = (
    FedPlvm(),
    FedPlvm(contrast="log_of_sum"),
    FedPlvm(correction="cosine"),
    FedPlvm(contrast="log_of_sum", correction="cosine", weight=100.0),
    FedPlvm(alpha=1.0, temperature=0.5),
)


@pytest.mark.parametrize("method", METHODS, ids=["defaults", "log_of_sum", "cosine", "original", "cosines"])
def test_loss_and_gradient_of_each_client_are_the_reference(method):
    live = {name: p.requires_grad_(True) for name, p in clustered.params().items()}
    found = clustered.loss_of(method, live, clustered.batch(), clustered.got(clustered.answers()))
    gradients = dict(zip(live, torch.autograd.grad(found.sum(), list(live.values())), strict=True))
    for g in range(G):
        own = clustered.of(g, clustered.params())
        assert found[g].item() == pytest.approx(reference_loss(own, g, method), rel=1e-10)
        wanted = clustered.finite_differences(lambda p, client: reference_loss(p, client, method), own, g)
        for name in wanted:
            scale = 1 + np.abs(wanted[name]).max()
            np.testing.assert_allclose(gradients[name][g].numpy(), wanted[name], rtol=1e-4, atol=1e-7 * scale)


def test_every_option_changes_the_loss():
    params, batch, down = clustered.params(), clustered.batch(), clustered.got(clustered.answers())
    found = [clustered.loss_of(method, params, batch, down)[0].item() for method in METHODS]
    assert len({round(loss, 6) for loss in found}) == len(METHODS)


def test_defaults_are_the_papers():
    method = FedPlvm()
    assert (method.alpha, method.temperature, method.weight) == (0.25, 0.07, 0.5)
    assert (method.contrast, method.correction) == ("mean_of_logs", "count")
    assert method.prototypes == Finch()
    assert method.server == Finch()


def test_prototypes_can_be_divided_otherwise():
    settings = {"name": "fedplvm", "prototypes": {"name": "kmeans", "ratio": 0.2}}
    method = plug.build("privkit.methods", settings)
    assert isinstance(method, FedPlvm)
    assert method.prototypes == method.summary == KMeans(ratio=0.2)
    assert plug.build("privkit.methods", method.settings()) == method


@pytest.mark.parametrize("value", [0.0, 1.5, -0.25])
def test_an_exponent_outside_0_to_1_is_refused(value):
    with pytest.raises(InputError, match="fedplvm: alpha="):
        plug.build("privkit.methods", {"name": "fedplvm", "alpha": value})


# ---------------------------------------------------------------------- sparse similarities

cosines = st.floats(-1, 1, allow_subnormal=False)


@given(cosine=cosines, alpha=st.floats(0.05, 1))
def test_similarities_keep_their_sign_and_are_powers_away_from_0(cosine, alpha):
    found = _infonce.sparse(torch.tensor([[[cosine]]], dtype=torch.float64), alpha=alpha).item()
    assert np.sign(found) == np.sign(cosine)
    assert abs(found) <= 1 + 1e-12
    if abs(cosine) >= 1e-4:
        assert found == pytest.approx(np.sign(cosine) * abs(cosine) ** alpha, rel=1e-9)
    else:
        assert found == pytest.approx(cosine * 1e-4 ** (alpha - 1), rel=1e-9)


@given(cosine=cosines, alpha=st.floats(0.05, 1))
def test_their_slope_is_finite_and_never_negative(cosine, alpha):
    c = torch.tensor([[[cosine]]], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(_infonce.sparse(c, alpha=alpha).sum(), [c])
    assert 0 < slope.item() <= 1e-4 ** (alpha - 1) * (1 + 1e-9)


def test_an_exponent_of_1_leaves_cosines_as_they_are():
    values = torch.linspace(-1, 1, 41, dtype=torch.float64).view(1, 1, -1)
    torch.testing.assert_close(_infonce.sparse(values, alpha=1.0), values, rtol=0, atol=0)
