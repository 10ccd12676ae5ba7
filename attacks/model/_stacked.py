"""Many linear heads trained at once: they share every mini-batch, and a mask says which of them has which record.

All shadows see the same features, so their logits are one matrix product [B, d] x [d, C S]. Where a shadow does not
have a record, the record's residual is zero for it. Half of the products are wasted, and it is still much faster than
a loop over shadows. But shadows that share the order of their batches do not average its noise out: some share one, and
groups of them do not.

Training: SGD with momentum on softmax cross-entropy. The step size is stated in units of the inverse curvature, so it
need not be tuned to the scale of features; it falls linearly to zero.

Shapes: S shadows, R records, d features (one of them constant), C classes, P points in time.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int64

_MOMENTUM = 0.9


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How shadows are trained.

    Attributes:
        epochs: passes over all records.
        batch_size: records per step that the shadows share; each has about half of them.
        step: first step size times an upper bound of the curvature of the loss; stable below 2.
        decay: weight decay, as a fraction of that bound.
        together: shadows that share the order of their batches.
    """

    epochs: int = 40
    batch_size: int = 128
    step: float = 0.5
    decay: float = 1e-4
    together: int = 16


def train(
    x_Rd: Float32[np.ndarray, "R d"],
    y_R: Int64[np.ndarray, " R"],
    held_SR: Bool[np.ndarray, "S R"],
    *,
    num_classes: int,
    schedule: Schedule,
    seed: tuple[int, ...],
    points: int = 1,
) -> Float32[np.ndarray, "P d C S"]:
    """Return the weights of every shadow at so many points of training, the last of which is its end.

    Args:
        x_Rd: features, a constant among them where a bias is wanted.
        y_R: class of each record.
        held_SR: which shadow has which record.
        num_classes: of the heads.
        schedule: how they are trained.
        seed: of the order of records.
        points: equally spaced over epochs, at most as many as there are.
    """
    curvature = 0.5 * largest_eigenvalue(x_Rd)
    groups = [
        held_SR[start : start + schedule.together] for start in range(0, len(held_SR), schedule.together)
    ]
    found = [
        _group(
            x_Rd, y_R, held_GR, num_classes, schedule, curvature, np.random.default_rng((*seed, g)), points
        )
        for g, held_GR in enumerate(groups)
    ]
    return np.concatenate(found, axis=-1)


def _group(
    x_Rd: np.ndarray,
    y_R: np.ndarray,
    held_SR: np.ndarray,
    num_classes: int,
    schedule: Schedule,
    curvature: float,
    rng: np.random.Generator,
    points: int,
) -> np.ndarray:
    """Return the weights of shadows that share the order of their batches, at some points of training."""
    rate, decay = schedule.step / curvature, np.float32(schedule.decay * curvature)
    w = np.zeros((x_Rd.shape[1], num_classes * len(held_SR)), dtype=np.float32)
    moved = np.zeros_like(w)
    ends = set(np.linspace(0, schedule.epochs, points + 1).round().astype(int)[1:].tolist())
    held_RS = np.ascontiguousarray(held_SR.T).astype(np.float32)
    saved, done, steps = [], 0, schedule.epochs * -(-len(x_Rd) // schedule.batch_size)
    for epoch in range(1, schedule.epochs + 1):
        order = rng.permutation(len(x_Rd))
        for start in range(0, len(order), schedule.batch_size):
            rows = order[start : start + schedule.batch_size]
            moved *= _MOMENTUM
            moved += _gradient(w, x_Rd[rows], y_R[rows], held_RS[rows], num_classes)
            moved += decay * w
            w -= np.float32(rate * (1 - done / steps)) * moved
            done += 1
        if epoch in ends:
            saved.append(w.reshape(-1, num_classes, len(held_SR)).copy())
    return np.stack(saved)


def _gradient(
    w: np.ndarray, x_Bd: np.ndarray, y_B: np.ndarray, held_BS: np.ndarray, num_classes: int
) -> np.ndarray:
    """Return the gradient of every shadow's mean loss over the records of a batch that it has, shape [d, C S]."""
    p = (x_Bd @ w).reshape(len(x_Bd), num_classes, -1)
    p -= p.max(1, keepdims=True)
    np.exp(p, out=p)
    p *= (held_BS / np.maximum(held_BS.sum(0), 1.0) / p.sum(1))[:, None]
    p[np.arange(len(y_B)), y_B] -= held_BS / np.maximum(held_BS.sum(0), 1.0)
    return x_Bd.T @ p.reshape(len(x_Bd), -1)


def largest_eigenvalue(x_Rd: np.ndarray) -> float:
    """Return the largest eigenvalue of the mean of ``x x^T``."""
    x = x_Rd.astype(np.float64)
    gram = x.T @ x if x.shape[1] <= len(x) else x @ x.T
    return float(np.linalg.eigvalsh(gram / len(x))[-1])
