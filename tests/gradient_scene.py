"""Passes drawn at random: what attacks on gradients keep to whatever the model is."""

from dataclasses import replace

import numpy as np

from privkit.exposure import Exposure, Trace

TOKENS, WIDTH, INNER, CLASSES = 4, 32, 20, 3


def bank(count: int, *, seed: int = 0, width: int = WIDTH, inner: int = INNER) -> Exposure:
    """Return passes through an adapter (down, up) and a head; the last token of every third record is missing."""
    rng = np.random.default_rng(seed)
    present = np.ones((count, TOKENS), bool)
    present[::3, -1] = False
    pooled = np.zeros(count, np.int64)

    def drawn(width: int) -> np.ndarray:
        scale = np.exp(-np.arange(width) / width)
        return (rng.standard_normal((count, TOKENS, width)) * scale * present[..., None]).astype(np.float32)

    def trace(inputs: np.ndarray, slopes: np.ndarray) -> Trace:
        return Trace(inputs=inputs, slopes=slopes, present=present, pooled=pooled)

    last = rng.standard_normal((count, 1, width)).astype(np.float32)
    logits = (last[:, 0] @ rng.standard_normal((width, CLASSES)) / width**0.5).astype(np.float32)
    labels = rng.integers(0, CLASSES, count)
    odds = np.exp(logits - logits.max(1, keepdims=True))
    chances = odds / odds.sum(1, keepdims=True)
    errors = (chances - np.eye(CLASSES)[labels]).astype(np.float32)
    head = Trace(inputs=last, slopes=errors[:, None], present=np.ones((count, 1), bool), pooled=pooled)
    return Exposure(
        traces={
            "adapter.0.down": trace(drawn(width), drawn(inner)),
            "adapter.0.up": trace(drawn(inner), drawn(width)),
            "head": head,
        },
        logits=logits,
        losses=-np.log(chances[np.arange(count), labels]).astype(np.float64),
    )


def without_tokens(passes: Exposure, name: str) -> Exposure:
    """Return the same passes with no gradient in one map."""
    dead = replace(passes.traces[name], slopes=np.zeros_like(passes.traces[name].slopes))
    return replace(passes, traces={**passes.traces, name: dead})
