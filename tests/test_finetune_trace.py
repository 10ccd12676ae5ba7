"""Exposures: what one hooked pass sees is each record's own gradient, by autograd and by Opacus."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from privkit.errors import InputError
from privkit.finetune.batches import Batch
from privkit.finetune.defenses._fisguard import numerical_rank
from privkit.finetune.gradients import client_gradients
from privkit.finetune.guard import Guard
from privkit.finetune.model import build, logits
from privkit.finetune.trace import trace
from privkit.finetune.watched import watched
from tests.finetuned import LABELS, SENTENCES, alone, backbone, close, config, tensors, tuned, tuning

MODELS = [(b, t) for b in ("minilm", "random_bert", "random_gpt2") for t in ("adapter", "lora")]


@pytest.mark.parametrize(("name", "kind"), MODELS)
def test_every_record_s_gradient_is_the_one_that_it_alone_gives(name, kind):
    model, texts = tuned(name, kind)
    exposure = trace(model, texts, LABELS)
    assert list(exposure.traces) == list(model.maps())
    for record in range(len(LABELS)):
        own = alone(model, texts, LABELS, record)
        for weights, found in exposure.traces.items():
            assert np.abs(own[weights]).max() > 0
            assert close(found.gradients()[record], own[weights], part=1e-4)


@pytest.mark.parametrize(
    ("name", "kind"), [("minilm", "adapter"), ("minilm", "lora"), ("random_gpt2", "lora")]
)
def test_opacus_finds_the_same_gradients_of_single_records(name, kind):
    from opacus.grad_sample import GradSampleModule

    model, texts = tuned(name, kind)
    exposure = trace(model, texts, LABELS)
    wrapped = GradSampleModule(model, batch_first=True, loss_reduction="sum")
    for m in model.modules():
        m.train(isinstance(m, nn.Linear))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cross_entropy(wrapped(*tensors(texts)), torch.from_numpy(LABELS), reduction="sum").backward()
        for weights, found in exposure.traces.items():
            theirs = model.get_parameter(weights).grad_sample  # pyright: ignore[reportAttributeAccessIssue]
            assert close(found.gradients(), theirs.numpy(), part=1e-4)
    finally:
        wrapped.to_standard_module()
        model.zero_grad()
        model.eval()


@pytest.mark.parametrize(("name", "kind"), MODELS)
def test_neither_the_batch_nor_its_order_changes_a_record(name, kind):
    model, texts = tuned(name, kind)
    together = trace(model, texts, LABELS)
    order = np.array([4, 2, 0])
    some = trace(model, texts.take(order), LABELS[order])
    assert np.allclose(some.losses, together.losses[order], atol=1e-5)
    assert np.allclose(some.logits, together.logits[order], atol=1e-5)
    for weights, found in some.traces.items():
        assert close(found.gradients(), together.traces[weights].gradients()[order], part=1e-4)


def test_slopes_and_inputs_are_zero_where_there_is_no_token():
    model, texts = tuned("minilm", "adapter")
    for weights, found in trace(model, texts, LABELS).traces.items():
        if weights != "head.weight":
            assert (found.present == texts.present).all()
            assert not found.inputs[~found.present].any()
            assert not found.slopes[~found.present].any()


@pytest.mark.parametrize(("name", "last"), [("minilm", False), ("random_gpt2", True)])
def test_the_classified_token_is_the_first_one_of_an_encoder_and_the_last_real_one_of_a_decoder(name, last):
    model, texts = tuned(name, "adapter")
    found = trace(model, texts, LABELS).traces
    rows, up = np.arange(len(LABELS)), found["tuning.1.up.weight"]
    assert (up.pooled == (texts.lengths - 1 if last else 0)).all()
    # behind the last block nothing else reaches the classifier
    others = up.slopes.copy()
    others[rows, up.pooled] = 0
    assert not others.any()
    assert up.slopes[rows, up.pooled].any(axis=1).all()
    assert found["head.weight"].inputs.shape[1] == 1


def test_a_text_of_one_token_is_a_text():
    model, _ = tuned("random_gpt2", "adapter")
    one = backbone("random_gpt2", size="tiny").texts(np.array(["good"]))
    assert one.lengths.tolist() == [1]
    found = trace(model, one, LABELS[:1])
    assert close(
        found.traces["tuning.0.down.weight"].gradients()[0],
        alone(model, one, LABELS, 0)["tuning.0.down.weight"],
    )


def test_no_records_give_an_exposure_of_none():
    model, texts = tuned("minilm", "adapter")
    none = trace(model, texts.take(np.zeros(0, np.int64)), np.zeros(0, np.int64))
    assert len(none.losses) == 0


@pytest.mark.parametrize(("layers", "directions"), [(6, len(SENTENCES)), (2, 1)])
def test_the_last_adapter_s_gradient_has_one_direction_per_record_that_its_units_tell_apart(
    layers, directions
):
    """Behind the last block only classified tokens have slopes (spec/projres 1.6a).

    After two blocks these tokens are nearly the same in all sentences, so the same units are on for all of them, and
    all slopes lie in the span of the head's rows, which has C - 1 = 1 directions (T7).
    """
    net = backbone("minilm", layers=layers)
    model = build(net, tuning("adapter"), classes=2, seed=0)
    last = f"tuning.{layers - 1}.down.weight"
    gradients = trace(model, net.texts(SENTENCES), LABELS, maps=[last]).traces[last].gradients()
    assert numerical_rank(gradients.sum(0)) == directions


def test_the_first_gradient_of_lora_s_input_side_is_zero():
    net = backbone("minilm", layers=2)
    model = build(net, tuning("lora", rank=3), classes=2, seed=0)
    for weights, found in trace(model, net.texts(SENTENCES), LABELS).traces.items():
        assert bool(found.gradients().any()) == ("lora_A" not in weights)


def test_a_dead_unit_has_a_row_of_zeros():
    model, texts = tuned("random_bert", "adapter")
    before = model.snapshot()
    with torch.no_grad():
        model.get_parameter("tuning.1.down.bias")[3] = -1e6
    try:
        gradients = trace(model, texts, LABELS).traces["tuning.1.down.weight"].gradients()
    finally:
        model.load(before)
    assert not gradients[:, 3].any()
    assert gradients[:, :3].any()


def test_one_pass_gives_every_client_the_gradient_of_its_mean_loss():
    model, texts = tuned("minilm", "adapter")
    owners = np.array([2, 0, 2, 0, 0, 2])
    batch = Batch(texts=texts, labels=LABELS, clients=owners, sizes={0: 3.0, 2: 3.0, 5: 4.0}, round=0)
    found = client_gradients(model, batch, Guard(config()).losses)
    own = [alone(model, texts, LABELS, record) for record in range(len(LABELS))]
    for client in (0, 2):
        for name, g in found[client].items():
            mean = np.mean([own[r][name] for r in np.flatnonzero(owners == client)], axis=0)
            assert close(g.numpy(), mean, part=1e-4)
    assert not any(g.any() for g in found[5].values())


def test_only_some_maps_are_looked_at():
    model, texts = tuned("minilm", "adapter")
    assert list(trace(model, texts, LABELS, maps=["head.weight"]).traces) == ["head.weight"]
    none = trace(model, texts, LABELS, maps=[])
    assert none.traces == {}
    assert np.allclose(none.losses, trace(model, texts, LABELS).losses)
    with pytest.raises(InputError, match=r"map 'head' is not trained; trained are tuning\.0\.down\.weight"):
        trace(model, texts, LABELS, maps=["head"])


def test_a_label_that_the_head_has_not_is_refused():
    model, texts = tuned("minilm", "adapter")
    with pytest.raises(InputError, match="labels go from 0 to 2, and the head has classes 0 to 1"):
        trace(model, texts, LABELS * 2)


def test_weights_that_are_not_finite_are_refused():
    model, texts = tuned("random_bert", "adapter")
    before = model.snapshot()
    model.load({name: p * float("nan") for name, p in before.items()})
    try:
        with pytest.raises(InputError, match="a logit is not finite"):
            trace(model, texts, LABELS)
    finally:
        model.load(before)


def test_weights_of_another_model_are_refused_by_name():
    model, _ = tuned("random_bert", "adapter")
    own = model.snapshot()
    with pytest.raises(InputError, match=r"lack head\.bias"):
        model.load({n: p for n, p in own.items() if n != "head.bias"})
    with pytest.raises(InputError, match=r"head\.bias of shape \[3\]; the model's is \[2\]"):
        model.load(own | {"head.bias": torch.zeros(3)})
    with pytest.raises(InputError, match="hold extra, which the model does not train"):
        model.load(own | {"extra": torch.zeros(3)})


def test_a_map_that_is_used_twice_is_refused():
    twice = nn.Linear(2, 2)
    with watched({"twice.weight": twice}):
        twice(torch.zeros(1, 2))
        with pytest.raises(InputError, match=r"twice\.weight is used twice in one pass"):
            twice(torch.zeros(1, 2))


def test_the_same_seed_gives_the_same_model_whatever_was_drawn_before():
    net = backbone("random_bert", size="tiny")
    first = build(net, tuning("adapter"), classes=2, seed=3).snapshot()
    torch.rand(5)
    state = torch.random.get_rng_state()
    again = build(net, tuning("adapter"), classes=2, seed=3)
    assert (torch.random.get_rng_state() == state).all()
    assert all(torch.equal(p, first[name]) for name, p in again.snapshot().items())
    other = build(net, tuning("adapter"), classes=2, seed=4)
    assert not np.array_equal(logits(other, net.texts(SENTENCES)), logits(again, net.texts(SENTENCES)))
