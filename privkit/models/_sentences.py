"""Sentences made vectors by a transformer: the mean over the tokens of its last layer."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32

from privkit.errors import InputError
from privkit.models import _transformers

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

BATCH = 32


def only_sentences(records: np.ndarray, *, reader: str) -> list[str]:
    """Return the records if they are sentences; ``reader`` is the encoder that asks.

    Raises:
        InputError: they are images, or something else.
    """
    if records.ndim in (3, 4):
        raise InputError(
            f"encoder {reader} reads sentences, and these records are images; take one that reads images, such as "
            "efficientnet_lite0."
        )
    if records.ndim != 1 or records.dtype.kind != "U":
        raise InputError(
            f"encoder {reader} reads an array of str of shape [N], not {records.dtype} of {list(records.shape)}; "
            "change the records' shape and type."
        )
    return records.tolist()


def vectors(
    folder: Path, sentences: list[str], *, dim: int, max_length: int, layers: int | None, normalize: bool
) -> Float32[np.ndarray, "N dim"]:
    """Return one vector per sentence, in their order; batches are of sentences of about the same length.

    Args:
        folder: the model and its tokenizer.
        sentences: at least one token each.
        dim: numbers per vector.
        max_length: tokens after which a sentence is cut.
        layers: keep only so many of the first layers; none keeps all.
        normalize: scale every vector to Euclidean length 1.

    Raises:
        InputError: the folder's files do not belong together, the model has fewer layers or reads fewer tokens, it
            gives vectors of another length, or a sentence has no token.
    """
    import torch

    net, tokenizer = _model(folder, layers), _transformers.tokenizer(folder, max_length=max_length)
    out = np.empty((len(sentences), dim), np.float32)
    with torch.inference_mode():
        for places, ids, mask in _batches(tokenizer, sentences, max_length):
            h = net(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).last_hidden_state
            z = _mean(h, torch.from_numpy(mask))
            if z.shape[1] != dim:
                raise InputError(
                    f"the model gives {z.shape[1]} numbers, and its settings say {dim}; take the settings that belong "
                    "to the weights."
                )
            out[places] = (torch.nn.functional.normalize(z) if normalize else z).numpy()
    return out


def _model(folder: Path, layers: int | None) -> "Module":
    """Return the base model with only its first layers."""
    settings = _transformers.config(folder)
    settings.use_cache = False  # a decoder would keep what it needs to write on
    if layers is not None:
        if layers > settings.num_hidden_layers:
            raise InputError(
                f"layers={layers}: the model has {settings.num_hidden_layers}; give no more than that."
            )
        settings.num_hidden_layers = layers
    return _transformers.model(folder, settings)


def _batches(
    tokenizer: Any, sentences: list[str], max_length: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the places of a few sentences, their tokens, filled up to the longest, and where there is one."""
    if not sentences:
        return
    tokens = tokenizer(sentences, truncation=True, max_length=max_length)["input_ids"]
    lengths = np.array([len(ids) for ids in tokens])
    if lengths.min() == 0:
        raise InputError(f"sentence {lengths.argmin()} has no token; leave out records without text.")
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), BATCH):
        places = order[start : start + BATCH]
        mask = (np.arange(lengths[places].max()) < lengths[places, None]).astype(np.int64)
        ids = np.full(mask.shape, tokenizer.pad_token_id or 0)
        ids[mask == 1] = np.concatenate([tokens[i] for i in places])
        yield places, ids, mask


def _mean(h: "Tensor", mask: "Tensor") -> "Tensor":
    """Return the mean over the tokens of each sentence, not over what it was filled up with."""
    weights = mask[..., None].to(h.dtype)
    return (h * weights).sum(1) / weights.sum(1)
