"""Features that the head reads, centred and scaled by public records."""

import copy

import numpy as np
import pytest
import torch

from privkit.errors import InputError
from privkit.finetune.lab import Lab
from privkit.finetune.model import Tuned, logits
from privkit.finetune.public import STANDARDISING
from privkit.finetune.texts import Texts
from privkit.finetune.trace import trace
from tests.finetuned import LABELS, alone, close, config, tensors, tuned

CPU = torch.device("cpu")


def fresh() -> tuple[Tuned, Texts]:
    model, texts = tuned("random_bert", "adapter")
    return copy.deepcopy(model), texts


def lab(**changes) -> Lab:
    return Lab.open(config(standardise=True, **changes), seed=0, device=CPU)


@torch.no_grad()
def read(model, texts) -> np.ndarray:
    return model.pooled(*tensors(texts)).numpy()


def test_the_head_reads_numbers_of_mean_0_and_deviation_1():
    here = lab()
    found = read(here.model, here.public.first(STANDARDISING).texts)
    assert np.abs(found.mean(0)).max() < 1e-4
    assert np.abs(found.std(0) - 1).max() < 1e-3


def test_a_number_that_never_changes_becomes_0():
    model, texts = fresh()
    model.standardise(texts.take(np.zeros(4, np.int64)))
    assert (read(model, texts) == 0).all()


def test_a_head_that_would_read_zeros_alone_is_refused():
    here = lab(public=1)
    with pytest.raises(InputError, match="are all alike to the model; own more of them"):
        assert here.model


def test_a_record_s_gradient_is_still_its_own():
    model, texts = fresh()
    model.standardise(texts)
    exposure = trace(model, texts, LABELS)
    own = alone(model, texts, LABELS, 2)
    for weights, found in exposure.traces.items():
        assert close(found.gradients()[2], own[weights], part=1e-4)


def test_fisguard_begins_with_the_standardised_features_of_the_pretrained_model():
    here, plain = lab(defense={"name": "fisguard", "rank": 4}), lab()
    texts = here.public.first(STANDARDISING).texts
    wanted = torch.from_numpy(plain.embedded([texts])).double()
    wanted = (wanted - wanted.mean(0)) / wanted.std(0, correction=0)
    assert np.allclose(read(here.model, texts), wanted.numpy(), atol=1e-3)


def test_nothing_changes_unless_it_is_asked_for():
    model, texts = fresh()
    before = logits(model, texts)
    assert not model.standardised
    model.standardise(texts)
    assert np.abs(logits(model, texts) - before).max() > 1e-3
