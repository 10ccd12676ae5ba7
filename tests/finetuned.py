"""Small models and runs of the gradient lab that several tests share."""

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from privkit import plug
from privkit.finetune.backbones._base import AbstractBackbone
from privkit.finetune.config import FinetuneConfig
from privkit.finetune.lab import Lab
from privkit.finetune.model import Tuned, build
from privkit.finetune.texts import Texts
from privkit.finetune.tuning._base import AbstractTuning

SENTENCES = np.array(
    [
        "A moving and often funny film.",
        "Dull.",
        "I did not like this long, boring movie at all, and neither did any of my friends.",
        "The camera works as advertised.",
        "It broke after two days, so I sent it back.",
        "Great!",
    ]
)
LABELS = np.array([1, 0, 0, 1, 0, 1])

TINY: dict[str, Any] = {
    "data": {"name": "vader", "alpha": 1000.0, "clients": 3, "test_per_class": 10},
    "backbone": {"name": "random_bert", "size": "tiny", "max_length": 24},
    "tuning": {"name": "adapter", "width": 8},
    "rounds": 3,
    "batch": 4,
    "public": 60,
    "questions": {"clients": 2},
}
"""A federation of three clients that tune an untrained model of two blocks of width 32."""


def config(**changes: Any) -> FinetuneConfig:
    return FinetuneConfig.from_settings(TINY | changes, where="test")


@cache
def lab(settings: FinetuneConfig | None = None, seed: int = 0) -> Lab:
    """Return a lab; tests that change its model take one of their own."""
    return new_lab(settings or config(), seed)


def new_lab(settings: FinetuneConfig, seed: int = 0) -> Lab:
    return Lab.open(settings, seed=seed, device=torch.device("cpu"))


def backbone(name: str, **settings: Any) -> AbstractBackbone:
    found = plug.build("privkit.finetune.backbones", {"name": name, "max_length": 24, **settings})
    assert isinstance(found, AbstractBackbone)
    return found


def tuning(name: str, **settings: Any) -> AbstractTuning:
    found = plug.build("privkit.finetune.tuning", {"name": name, **settings})
    assert isinstance(found, AbstractTuning)
    return found


def moved(model: Tuned) -> Tuned:
    """Return a model whose trained weights are all somewhere else, so that nothing is 0."""
    torch.manual_seed(1)
    model.load({name: p + 0.05 * torch.randn_like(p) for name, p in model.trained().items()})
    return model


@cache
def tuned(name: str, kind: str) -> tuple[Tuned, Texts]:
    """Return a model of two blocks that has moved from where it began, and the sentences as it reads them."""
    of = {"minilm": backbone("minilm", layers=2)}
    net = of.get(name) or backbone(name, size="tiny")
    how = tuning("adapter", width=12) if kind == "adapter" else tuning("lora", rank=3)
    return moved(build(net, how, classes=2, seed=0)), net.texts(SENTENCES)


def tensors(texts: Texts) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(texts.ids), torch.from_numpy(texts.lengths)


def alone(model: Tuned, texts: Texts, labels: np.ndarray, record: int) -> dict[str, np.ndarray]:
    """Return the gradient of one record's loss, by autograd, without anybody else in the batch."""
    one = texts.take(np.array([record]))
    loss = cross_entropy(model(*tensors(one)), torch.from_numpy(labels[[record]]))
    trained = model.trained()
    return {
        n: g.numpy() for n, g in zip(trained, torch.autograd.grad(loss, list(trained.values())), strict=True)
    }


def close(a: np.ndarray, b: np.ndarray, *, part: float = 1e-5) -> bool:
    """Return whether two arrays differ by no more than a part of their largest number."""
    return bool(np.abs(a - b).max() <= part * max(np.abs(b).max(), 1e-8))
