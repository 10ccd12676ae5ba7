"""A frozen transformer, what is trained of it, and a classifier on one of its tokens."""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from privkit.errors import InputError
from privkit.finetune.backbones._base import AbstractBackbone
from privkit.finetune.texts import Texts
from privkit.finetune.tuning._base import AbstractTuning

_FLAT = 1e-5  # of the largest number: rounding of float32 is less
Weights = dict[str, Tensor]
"""Trained parameters by name."""


class Tuned(nn.Module):
    """Token numbers and lengths to one logit per class.

    Attributes:
        net: the base model, frozen but for what the tuning put into it.
        tuning: trained maps that stand beside the base model's own modules.
        head: the classifier; a ``Linear``, or one with a fixed input.
        standardised: whether the head reads features that were centred and scaled.
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, net: nn.Module, *, causal: bool, tuning: AbstractTuning, classes: int) -> None:
        super().__init__()
        self.net = net.requires_grad_(False)
        self.causal, self.classes, self.settings = causal, classes, tuning
        self.tuning = tuning.insert(net)
        self.head: nn.Module = nn.Linear(self.width, classes)
        self.register_buffer("centre", torch.zeros(self.width))
        self.register_buffer("spread", torch.ones(self.width))
        self.standardised = False
        self.eval()

    def forward(self, ids_NT: Tensor, lengths_N: Tensor) -> Tensor:
        return self.head(self.pooled(ids_NT, lengths_N))

    def pooled(self, ids_NT: Tensor, lengths_N: Tensor) -> Tensor:
        """Return what the head reads: the last hidden state of the token that is classified, shape [N, d]."""
        features_Nd = pooled(self.net, ids_NT, lengths_N, causal=self.causal)
        return (features_Nd - self.centre) / self.spread if self.standardised else features_Nd

    def standardise(self, texts: Texts) -> None:
        """Centre and scale what the head reads, number by number, by what these records give at the weights of now.

        A number that is the same for all of them becomes 0.
        """
        features_Nd = torch.from_numpy(embed(self.net, texts, causal=self.causal)).double()
        spread_d = features_Nd.std(0, correction=0)
        flat_d = spread_d <= _FLAT * features_Nd.abs().amax(0)
        self.centre.copy_(features_Nd.mean(0))
        self.spread.copy_(spread_d.masked_fill(flat_d, torch.inf))
        self.standardised = True

    @property
    def width(self) -> int:
        """Return how many numbers a token's hidden state has."""
        return int(self.net.config.hidden_size)  # pyright: ignore

    @property
    def device(self) -> torch.device:
        """Return where its passes are computed."""
        return next(self.parameters()).device

    def trained(self) -> Weights:
        """Return what clients train, by name; the tensors themselves."""
        return {name: p for name, p in self.named_parameters() if p.requires_grad}

    def maps(self) -> dict[str, nn.Linear]:
        """Return the maps whose weights are trained, by the name of these weights, in the order of the model."""
        linear = {f"{name}.weight": m for name, m in self.named_modules() if isinstance(m, nn.Linear)}
        return {name: m for name, m in linear.items() if m.weight.requires_grad}

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Take trained parameters from elsewhere.

        Raises:
            InputError: one is missing, unknown, or of another shape.
        """
        own = self.trained()
        refuse_other_names(own, weights, what="the weights")
        for name, p in own.items():
            p.copy_(weights[name])

    def snapshot(self) -> Weights:
        """Return a copy of what clients train."""
        return {name: p.detach().clone() for name, p in self.trained().items()}


def pooled(net: nn.Module, ids_NT: Tensor, lengths_N: Tensor, *, causal: bool) -> Tensor:
    """Return the last hidden state of the first token, or of each text's last one if ``causal``, shape [N, d]."""
    mask_NT = (torch.arange(ids_NT.shape[1], device=ids_NT.device) < lengths_N[:, None]).long()
    hidden_NTd = net(input_ids=ids_NT, attention_mask=mask_NT).last_hidden_state
    places_N = lengths_N - 1 if causal else torch.zeros_like(lengths_N)
    return hidden_NTd[torch.arange(len(places_N), device=ids_NT.device), places_N]


def build(
    backbone: AbstractBackbone,
    tuning: AbstractTuning,
    *,
    classes: int,
    seed: int,
) -> Tuned:
    """Return a model before any training; the new weights are those of the seed, whatever was drawn before.

    Args:
        backbone: whose base model is tuned.
        tuning: what is trained of it.
        classes: logits.
        seed: of the run.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Tuned(backbone.net(), causal=backbone.causal, tuning=tuning, classes=classes)


def passes(model: nn.Module, texts: Texts) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
    """Yield rows of sentences, their tokens and lengths, on the model's device, a few of equal length at a time."""
    device = next(model.parameters()).device
    for rows in texts.groups():
        some = texts.take(rows)
        yield rows, torch.from_numpy(some.ids).to(device), torch.from_numpy(some.lengths).to(device)


@torch.no_grad()
def embed(net: nn.Module, texts: Texts, *, causal: bool) -> np.ndarray:
    """Return the vector that a frozen base model gives each sentence at its classified token, float32 [N, d]."""
    out = np.zeros((len(texts), int(net.config.hidden_size)), np.float32)  # pyright: ignore
    for rows, ids, lengths in passes(net, texts):
        out[rows] = pooled(net, ids, lengths, causal=causal).cpu().numpy()
    return out


@torch.no_grad()
def logits(model: Tuned, texts: Texts) -> np.ndarray:
    """Return the logits of each sentence, float32 of shape [N, C]."""
    out = np.zeros((len(texts), model.classes), np.float32)
    for rows, ids, lengths in passes(model, texts):
        out[rows] = model(ids, lengths).cpu().numpy()
    return out


def refuse_other_names(
    own: Mapping[str, Tensor], given: Mapping[str, Tensor] | Mapping[str, np.ndarray], *, what: str
) -> None:
    """Raise unless the same names and shapes are there.

    Raises:
        InputError: one is missing, unknown, or of another shape.
    """
    for name, p in own.items():
        if name not in given:
            raise InputError(f"{what} lack {name}; give every trained tensor.")
        shape = tuple(given[name].shape)
        if shape != tuple(p.shape):
            raise InputError(f"{what} hold {name} of shape {list(shape)}; the model's is {list(p.shape)}.")
    extra = next((name for name in given if name not in own), None)
    if extra is not None:
        raise InputError(f"{what} hold {extra}, which the model does not train; leave it out.")
