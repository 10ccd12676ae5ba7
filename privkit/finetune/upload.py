"""What leaves a client: a change of weights in the kind and the numbers that were agreed on."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from privkit.finetune.terms import Transport, UploadKind
from privkit.release import Update


def rounded(array: np.ndarray, transport: Transport) -> np.ndarray:
    """Return an array as it arrives: float16 for fp16, else float32 of the values that the format has.

    int8 has one scale per tensor, its largest absolute value over 127.

    >>> rounded(np.array([0.0, 1.0, -254.0], np.float32), Transport.INT8).tolist()
    [0.0, 0.0, -254.0]
    """
    x = np.asarray(array, np.float32)
    if transport is Transport.FP16:
        return x.astype(np.float16)
    if transport is Transport.BF16:
        return torch.from_numpy(np.array(x)).to(torch.bfloat16).float().numpy()
    if transport is Transport.INT8:
        scale = np.float32(np.abs(x).max(initial=0.0) / 127)
        return np.rint(x / scale) * scale if scale else np.zeros_like(x)
    return x


def message(
    change: Mapping[str, np.ndarray], start: Mapping[str, Tensor], *, kind: UploadKind, transport: Transport
) -> Update:
    """Return a client's message.

    Args:
        change: its gradient, or what its steps added to the weights.
        start: weights that the round began with.
        kind: what is sent.
        transport: in which numbers.
    """
    named = dict(change)
    if kind is UploadKind.WEIGHTS:
        named = {name: start[name].cpu().numpy() + array for name, array in change.items()}
    return Update(named={n: rounded(a, transport) for n, a in named.items()}, means=kind.value)


def summed(updates: Mapping[int, Update], shares: Mapping[int, float]) -> Update:
    """Return the weighted mean of all messages, as secure aggregation gives it to the server."""
    kinds = {update.means for update in updates.values()}
    first = next(iter(updates.values()))
    total = {
        name: sum(shares[k] * u.named[name].astype(np.float64) for k, u in updates.items())
        for name in first.named
    }
    return Update(named={n: np.asarray(a, np.float32) for n, a in total.items()}, means=kinds.pop())
