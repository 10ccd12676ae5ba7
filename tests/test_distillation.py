"""DCR's local rule, against the paper's formulas computed one record at a time."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from privkit.batch import Batch
from privkit.defenses._distillation import ClippingRegularization, soft_clip
from privkit.network import Network
from privkit.personal import PersonalModel

G, B, D, C = 3, 5, 4, 6
NETWORK = Network(PersonalModel())


def tensors(seed: int = 0) -> tuple[dict[str, torch.Tensor], torch.Tensor, Batch]:
    draw = torch.Generator().manual_seed(seed)
    params = {
        "head.weight": torch.randn(G, D, C, generator=draw),
        "head.bias": torch.randn(G, C, generator=draw),
    }
    z = torch.randn(G, B, D, generator=draw)
    weight = torch.rand(G, B, generator=draw)
    batch = Batch(x=z, y=torch.zeros(G, B, dtype=torch.int64), weight=weight / weight.sum(1, keepdim=True))
    return params, z, batch


@pytest.mark.parametrize(
    ("length", "wanted"), [(1.0, 4.0), (4.0, 4.706), (5.0, 4.762), (10.0, 4.878), (100.0, 4.988)]
)
def test_soft_clip_gives_the_published_lengths(length, wanted):
    """The acceptance values of the specification: R = 5, gamma = 0.05."""
    z = length * functional.normalize(torch.arange(1.0, 9.0), dim=0)
    clipped = soft_clip(z, radius=5.0, softness=0.05)
    assert clipped.norm().item() == pytest.approx(wanted, abs=5e-4)
    assert functional.cosine_similarity(z, clipped, dim=0).item() == pytest.approx(1.0)


def test_the_published_code_never_stretches():
    z = torch.tensor([[1.0, 0.0], [0.0, 100.0]])
    clipped = soft_clip(z, radius=5.0, softness=0.05, clamped=True)
    assert torch.equal(clipped[0], z[0])
    assert clipped[1].norm().item() == pytest.approx(4.988, abs=5e-4)


def test_a_vector_of_zeros_stays_one():
    assert not soft_clip(torch.zeros(2, 3), radius=5.0, softness=0.05).any()


@pytest.mark.parametrize("scaled", [False, True])
def test_the_loss_is_the_divergence_from_teacher_to_student(scaled):
    rule = ClippingRegularization(radius=2.0, temperature=3.0, weight=0.7, scaled=scaled)
    params, z, batch = tensors()
    memory = rule.memory(tensors(9)[0])
    found = rule.loss(NETWORK, params, memory, z, rule.bound(z), batch)
    for g in range(G):
        total = 0.0
        for b in range(B):
            raw = z[g, b]
            soft = raw * 2.0 / (raw.norm() + 0.05 * 2.0)
            p = ((raw @ memory["head.weight"][g] + memory["head.bias"][g]) / 3.0).softmax(0)
            q = ((soft @ params["head.weight"][g] + params["head.bias"][g]) / 3.0).softmax(0)
            total += batch.weight[g, b].item() * (p * (p / q).log()).sum().item()
        assert found[g].item() == pytest.approx(0.7 * total * (9.0 if scaled else 1.0), rel=1e-4)


def test_the_teacher_gets_no_gradient_and_sees_raw_embeddings():
    rule = ClippingRegularization(radius=2.0)
    params, z, batch = tensors()
    z = z.requires_grad_(True)
    memory = {
        name: m.clone().requires_grad_(m.is_floating_point()) for name, m in rule.memory(params).items()
    }
    loss = rule.loss(NETWORK, params, memory, z, rule.bound(z), batch).sum()
    grads = torch.autograd.grad(loss, [z, memory["head.weight"]], allow_unused=True)
    assert grads[0] is not None
    assert grads[1] is None


def test_the_teacher_is_a_moving_average_of_the_head_of_those_that_stepped():
    rule = ClippingRegularization(momentum=0.9)
    start, later = tensors()[0], tensors(1)[0]
    memory = rule.memory(start)
    rule.after_step(later, memory, active=2)
    rule.after_step(later, memory, active=1)
    name = "head.weight"
    torch.testing.assert_close(memory[name][2], start[name][2])
    torch.testing.assert_close(memory[name][1], 0.9 * start[name][1] + 0.1 * later[name][1])
    torch.testing.assert_close(memory[name][0], 0.81 * start[name][0] + 0.19 * later[name][0])
    assert memory["steps"].tolist() == [2, 1, 0]


def test_share_of_the_teacher_still_at_its_start_is_what_the_specification_says():
    """beta ** steps of a run: .966 after 40 - 5 steps, .856 after 160 - 5."""
    rule = ClippingRegularization(warm_up=5)
    zero = {"head.weight": torch.zeros(1, 1, 1)}
    for steps, wanted in ((40, 0.966), (160, 0.856)):
        memory = rule.memory({"head.weight": torch.ones(1, 1, 1)})
        for step in range(steps):
            head = {"head.weight": torch.ones(1, 1, 1)} if step < 5 else zero
            rule.after_step(head, memory, active=1)
        assert memory["head.weight"].item() == pytest.approx(wanted, abs=5e-4)


def test_while_it_warms_up_the_teacher_is_the_head_and_teaches_nothing():
    rule = ClippingRegularization(warm_up=3)
    params, z, batch = tensors()
    memory = rule.memory(tensors(4)[0])
    for step in range(4):
        loss = rule.loss(NETWORK, params, memory, z, rule.bound(z), batch)
        assert bool(loss.any()) == (step >= 3)
        rule.after_step(params, memory, active=G)
    torch.testing.assert_close(memory["head.weight"], params["head.weight"])


def test_the_memory_is_a_copy():
    rule, params = ClippingRegularization(), tensors()[0]
    memory = rule.memory(params)
    before = memory["head.weight"].clone()
    params["head.weight"] += 1
    assert torch.equal(memory["head.weight"], before)
    assert math.isclose(rule.momentum, 0.999)
    assert np.isfinite(before.numpy()).all()
