"""Traces give gradients; a gradient view gives what was sent."""

import numpy as np
import pytest
import torch

from accountant.contract import Contract
from accountant.events import NonPrivate
from privkit.exposure import GradientView, Trace
from privkit.release import Head, Payload, Release, Update


def test_gradients_of_a_trace_are_those_of_autograd():
    torch.manual_seed(0)
    w, x = torch.randn(3, 5, requires_grad=True), torch.randn(2, 4, 5)
    y = x @ w.T
    losses = y.sin().sum((1, 2))
    wanted = [torch.autograd.grad(loss, w, retain_graph=True)[0].numpy() for loss in losses]
    (slopes,) = torch.autograd.grad(losses.sum(), y)
    trace = Trace(
        inputs=x.numpy(),
        slopes=slopes.numpy(),
        present=np.ones((2, 4), bool),
        pooled=np.zeros(2, np.int64),
    )
    np.testing.assert_allclose(trace.gradients(), wanted, rtol=1e-5, atol=1e-6)


def test_a_delta_is_minus_a_gradient_and_what_was_not_sent_is_refused():
    named, event = {"w": np.ones((2, 3), np.float32)}, NonPrivate(contract=Contract())
    payloads: list[Payload] = [Update(named=named, means=m) for m in ("gradient", "delta", "weights")]
    payloads.append(Head(weights=np.ones((2, 3), np.float32)))
    releases = tuple(Release(round=0, client=c, payload=p, event=event) for c, p in enumerate(payloads))
    view = GradientView(releases, batch_size=4)
    np.testing.assert_array_equal(view.gradient(round=0, client=0)["w"], named["w"])
    np.testing.assert_array_equal(view.gradient(round=0, client=1)["w"], -named["w"])
    for client in (2, 3):
        with pytest.raises(TypeError, match="sent no gradient"):
            view.gradient(round=0, client=client)
    with pytest.raises(KeyError):
        view.gradient(round=1, client=0)
