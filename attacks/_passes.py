r"""Passes of records through the head that a model ends with: what they put into its trained maps.

A head at a temperature has one map, :math:`y = w u` with :math:`u = h / \|h\|` and logits :math:`\tau y`: a record
gives it the gradient :math:`\tau (p - e_y) u^T`. A plain head of one layer has :math:`(p - e_y) h^T`, and one of
several layers what the chain rule makes of it.
"""

import numpy as np
from jaxtyping import Float64, Int64

from attacks._base import NotApplicableError
from attacks._models import Model
from attacks.model._signals import log_probabilities, losses
from privkit.exposure import Exposure, Trace


def passes(model: Model, vectors_Nd: np.ndarray, labels_N: Int64[np.ndarray, " N"]) -> Exposure:
    """Return what some records put into each layer of a model's head.

    Args:
        model: at the weights that the client trained from.
        vectors_Nd: under the public encoder; one of length 0 moves no head that reads embeddings of length 1.
        labels_N: class of each.

    Raises:
        NotApplicableError: a class is none of the head's, or a logit is not finite.
    """
    inputs = model.inputs(vectors_Nd)
    logits_NC = model.given(model.layers[-1], inputs[-1])
    _refuse_odd(logits_NC, labels_N)
    errors_NC = np.exp(log_probabilities(logits_NC))
    errors_NC[np.arange(len(labels_N)), labels_N] -= 1.0
    slopes = [model.slope * errors_NC]
    for name, inputs_Nk in zip(model.layers[:0:-1], inputs[:0:-1], strict=True):
        slopes.insert(0, (slopes[0] @ model.named[name].T.astype(np.float64)) * (inputs_Nk > 0))
    return Exposure(
        traces={
            name: _trace(inputs_Nk, slopes_Nm)
            for name, inputs_Nk, slopes_Nm in zip(model.layers, inputs, slopes, strict=True)
        },
        logits=logits_NC.astype(np.float32),
        losses=losses(logits_NC, labels_N),
    )


def joined(parts: list[Exposure], order_N: Int64[np.ndarray, " N"]) -> Exposure:
    """Return the passes of several groups of records, in another order of all of them."""
    return Exposure(
        traces={
            name: Trace(
                **{
                    field: np.concatenate([getattr(part.traces[name], field) for part in parts])[order_N]
                    for field in ("inputs", "slopes", "present", "pooled")
                }
            )
            for name in parts[0].traces
        },
        logits=np.concatenate([part.logits for part in parts])[order_N],
        losses=np.concatenate([part.losses for part in parts])[order_N],
    )


def _trace(inputs_Nk: Float64[np.ndarray, "N k"], slopes_Nm: Float64[np.ndarray, "N m"]) -> Trace:
    return Trace(
        inputs=inputs_Nk[:, None].astype(np.float32),
        slopes=slopes_Nm[:, None].astype(np.float32),
        present=np.ones((len(inputs_Nk), 1), bool),
        pooled=np.zeros(len(inputs_Nk), np.int64),
    )


def _refuse_odd(logits_NC: Float64[np.ndarray, "N C"], labels_N: Int64[np.ndarray, " N"]) -> None:
    if not np.isfinite(logits_NC).all():
        raise NotApplicableError(
            "a candidate or the head gives a logit that is not finite; leave that record out, or that round"
        )
    classes = logits_NC.shape[1]
    if len(labels_N) and not 0 <= labels_N.min() <= labels_N.max() < classes:
        raise NotApplicableError(
            f"classes from {labels_N.min()} to {labels_N.max()} are asked about, and the head has {classes}"
        )
