"""What records put into the trained maps of a model: one hooked forward pass, one backward pass of the summed loss.

In evaluation mode a transformer mixes no records of a batch, so the derivative of the summed loss by what a map
gives for one record is that of this record's own loss: no record needs a backward pass of its own.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from privkit.errors import InputError
from privkit.exposure import Exposure, Trace
from privkit.finetune.model import Tuned, passes
from privkit.finetune.texts import Texts
from privkit.finetune.watched import watched

ExampleLosses = Callable[[Tensor, Tensor], Tensor]
"""Logits [N, C] and labels [N] to the loss of each record [N]."""


def plain_losses(logits_NC: Tensor, labels_N: Tensor) -> Tensor:
    """Return the cross-entropy of each record."""
    return cross_entropy(logits_NC, labels_N, reduction="none")


def trace(
    model: Tuned,
    texts: Texts,
    labels_N: np.ndarray,
    *,
    losses: ExampleLosses = plain_losses,
    maps: Sequence[str] | None = None,
) -> Exposure:
    """Return some records' passes through a model at its current weights.

    Args:
        model: in evaluation mode.
        texts: the records.
        labels_N: class of each.
        losses: what clients minimise; slopes are its derivatives. The losses that come back are cross-entropies.
        maps: names of the weights that are looked at, of :meth:`Tuned.maps`, maybe none; ``None``: all, which for N
            texts of T tokens takes N T (d + m) numbers of 4 bytes per map.

    Raises:
        InputError: a label is no class of the head, a name is none of a trained map, or a number is not finite.
    """
    found = _Found(model, texts, maps)
    with watched(found.maps) as seen:
        for rows, ids, lengths in passes(model, texts):
            seen.clear()
            logits_NC = model(ids, lengths)
            refuse_no_class(labels_N, classes=logits_NC.shape[1])
            y = torch.from_numpy(labels_N[rows]).to(ids.device)
            outs = [out for _, out in seen.values()]
            slopes = torch.autograd.grad(losses(logits_NC, y).sum(), outs) if outs else ()
            found.add(
                rows, logits_NC, y, {n: x for n, (x, _) in seen.items()}, dict(zip(seen, slopes, strict=True))
            )
    return found.exposure()


class _Found:
    """What was seen so far, as arrays that are filled up to the longest text."""

    def __init__(self, model: Tuned, texts: Texts, names: Sequence[str] | None) -> None:
        own = model.maps()
        unknown = next((name for name in names or () if name not in own), None)
        if unknown is not None:
            raise InputError(f"map {unknown!r} is not trained; trained are {', '.join(own)}.")
        self.maps = own if names is None else {name: own[name] for name in own if name in names}
        self.texts, self.causal = texts, model.causal
        self.logits: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.inputs: dict[str, np.ndarray] = {}
        self.slopes: dict[str, np.ndarray] = {}

    def add(
        self,
        rows: np.ndarray,
        logits_NC: Tensor,
        y: Tensor,
        inputs: dict[str, Tensor],
        slopes: dict[str, Tensor],
    ) -> None:
        own = plain_losses(logits_NC.detach().double(), y)
        self.logits.append((rows, logits_NC.detach().cpu().numpy(), own.cpu().numpy()))
        for name in inputs:
            self._put(self.inputs, name, rows, inputs[name])
            self._put(self.slopes, name, rows, slopes[name])

    def _put(self, kept: dict[str, np.ndarray], name: str, rows: np.ndarray, seen: Tensor) -> None:
        one_token = seen.ndim == 2  # the head reads the classified token only
        value = (seen[:, None] if one_token else seen).detach().cpu().numpy()
        if name not in kept:
            tokens = 1 if one_token else self.texts.ids.shape[1]
            kept[name] = np.zeros((len(self.texts), tokens, value.shape[2]), np.float32)
        present = self._present(kept[name])[rows, : value.shape[1]]
        kept[name][rows, : value.shape[1]] = np.where(present[..., None], value, 0)

    def _present(self, kept: np.ndarray) -> np.ndarray:
        return self.texts.present if kept.shape[1] > 1 else np.ones(kept.shape[:2], bool)

    def exposure(self) -> Exposure:
        n = len(self.texts)
        classes = self.logits[0][1].shape[1] if self.logits else 0
        logits, losses = np.zeros((n, classes), np.float32), np.zeros(n, np.float64)
        for rows, some, own in self.logits:
            logits[rows], losses[rows] = some, own
        if not np.isfinite(logits).all():
            raise InputError("a logit is not finite; the weights have diverged: lower the learning rates.")
        return Exposure(
            traces={name: self._trace(name) for name in self.maps if name in self.inputs},
            logits=logits,
            losses=losses,
        )

    def _trace(self, name: str) -> Trace:
        inputs = self.inputs[name]
        last = (
            self.texts.lengths - 1 if self.causal and inputs.shape[1] > 1 else np.zeros(len(inputs), np.int64)
        )
        return Trace(inputs=inputs, slopes=self.slopes[name], present=self._present(inputs), pooled=last)


def refuse_no_class(labels_N: np.ndarray, *, classes: int) -> None:
    """Raise unless every label is one of a head's classes."""
    if len(labels_N) and not 0 <= labels_N.min() <= labels_N.max() < classes:
        raise InputError(
            f"labels go from {labels_N.min()} to {labels_N.max()}, and the head has classes 0 to {classes - 1}; give "
            "labels of its classes."
        )
