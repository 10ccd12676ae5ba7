"""FedOT's Theorem 1: its bound holds, a smaller one does without orthogonality, and without normalising neither does.

The gradient of the head is ``(tau / n) sum_j (p_j - e_j) u_j^T`` with ``u_j = h'_j / ||h'_j||`` of length 1 whatever
map made ``h'``, and ``||p - e|| <= sqrt 2``. So two clients' gradients are at most ``2 sqrt 2 tau`` apart: condition
numbers of their maps say nothing about it.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from privkit.batch import Batch
from privkit.methods.fedot import FedOt
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.train.answers import stacked_answers

D, C = 6, 4
NOTHING = stacked_answers([{}, {}], [{}], torch.tensor([0, 0]))


class Case(NamedTuple):
    temperature: float
    maps_2dd: Tensor
    head_2Cd: Tensor
    x_2Bd: Tensor
    y_2B: Tensor

    @property
    def conditions(self) -> float:
        """Return the sum of both maps' condition numbers."""
        return torch.linalg.cond(self.maps_2dd).sum().item()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw two clients with maps of chosen condition numbers, heads of chosen size, and records of chosen number."""
    rng = np.random.default_rng(draw(st.integers(0, 9_999)))
    maps = []
    for _ in range(2):
        u, v = (np.linalg.qr(rng.standard_normal((D, D)))[0] for _ in range(2))
        kappa = draw(st.sampled_from([1.0, 4.0, 32.26, 1_000.0]))
        maps.append(u @ np.diag(np.geomspace(1, kappa, D)) @ v)
    records = draw(st.integers(1, 5))
    return Case(
        temperature=draw(st.sampled_from([1.0, 10.0, 100.0])),
        maps_2dd=torch.from_numpy(np.stack(maps)),
        head_2Cd=torch.from_numpy(draw(st.sampled_from([0.01, 1.0, 10.0])) * rng.standard_normal((2, C, D))),
        x_2Bd=torch.from_numpy(rng.standard_normal((2, records, D))),
        y_2B=torch.from_numpy(rng.integers(0, C, (2, records))),
    )


def apart(case: Case) -> float:
    """Return how far the two clients' gradients of the head are apart, from the engine's own loss."""
    network = Network(PersonalModel.model_validate({"transform": "linear", "temperature": case.temperature}))
    head = case.head_2Cd.mT.contiguous().requires_grad_(True)
    params = {"head.vectors": head, "transform.matrix": case.maps_2dd}
    weight = torch.full(case.y_2B.shape, 1 / case.y_2B.shape[1], dtype=torch.float64)
    batch = Batch(x=case.x_2Bd, y=case.y_2B, weight=weight)
    loss = FedOt().loss(network, params, network.embed(params, batch.x), batch, NOTHING)
    (gradient,) = torch.autograd.grad(loss.sum(), [head])
    return (gradient[0] - gradient[1]).norm().item()


@given(cases())
def test_gradients_are_never_farther_apart_than_the_bound_that_no_map_enters(case):
    assert apart(case) <= 2 * math.sqrt(2) * case.temperature * (1 + 1e-9)


@given(cases())
def test_the_printed_bound_holds(case):
    assert apart(case) <= 2 * case.temperature * case.conditions * (1 + 1e-9)


@pytest.mark.parametrize("temperature", [1.0, 10.0, 100.0])
def test_the_smaller_bound_is_reached(temperature):
    """Both heads are sure of the wrong class of the same record, each of the other's."""
    x = torch.zeros(2, 1, D).double()
    x[..., 0] = 1.0
    head = torch.zeros(2, C, D).double()
    head[0, 1, 0] = head[1, 0, 0] = 40.0
    eye = torch.eye(D).double().expand(2, D, D)
    found = apart(Case(temperature, eye, head, x, torch.tensor([[0], [1]])))
    assert found / temperature == pytest.approx(2 * math.sqrt(2), rel=1e-6)


@given(cases())
def test_a_records_own_gradient_is_bounded_without_any_clip(case):
    """``||p - e|| ||u|| tau <= sqrt 2 tau``: a clip norm for DP-SGD of the head that cuts nothing."""
    for j in range(case.x_2Bd.shape[1]):
        one = case._replace(x_2Bd=case.x_2Bd[:, j : j + 1], y_2B=case.y_2B[:, j : j + 1])
        opposite = one._replace(x_2Bd=torch.stack([one.x_2Bd[0], torch.zeros_like(one.x_2Bd[0])]))
        # the gradient of a record of zeros is zero
        assert apart(opposite) <= math.sqrt(2) * case.temperature * (1 + 1e-9)


@pytest.mark.parametrize("scale", [10.0, 100.0])
def test_without_normalising_what_a_map_gives_the_theorem_is_false(scale):
    """A multiple of a rotation has condition number 1, and moves the gradient as far as it likes."""
    rng = np.random.default_rng(0)
    u_2Bd = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((2, 1, D))), dim=-1)
    head = torch.zeros(2, C, D).double().requires_grad_(True)
    logits = scale * u_2Bd @ head.mT  # tau = 1, h normalised before the map scale * I
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor([0, 1]), reduction="sum")
    (gradient,) = torch.autograd.grad(loss, [head])
    assert (gradient[0] - gradient[1]).norm() > 2 * (1 + 1)
