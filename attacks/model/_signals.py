"""What a classifier shows of a record: losses, entropies and rescaled logits, computed from its logits.

All are computed on the scale of logarithms, so that a confident classifier does not make records equal.
Shapes: any leading axes, then N records (and C classes).
"""

import numpy as np
from jaxtyping import Float64, Int64

_LEAST = 1e-300  # of a probability whose logarithm is taken


def log_probabilities(logits: Float64[np.ndarray, "... N C"]) -> Float64[np.ndarray, "... N C"]:
    """Return the logarithm of the softmax of some logits."""
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def of_label(values: Float64[np.ndarray, "... N C"], labels_N: Int64[np.ndarray, " N"]) -> np.ndarray:
    """Return the entry of each record's own class, shape [..., N]."""
    return np.take_along_axis(values, _index(values, labels_N), axis=-1)[..., 0]


def losses(logits: Float64[np.ndarray, "... N C"], labels_N: Int64[np.ndarray, " N"]) -> np.ndarray:
    """Return the cross-entropy of each record, in nats, at least 0."""
    return -of_label(log_probabilities(logits), labels_N)


def entropies(logits: Float64[np.ndarray, "... N C"]) -> np.ndarray:
    """Return the entropy of each record's predicted distribution, in nats; in [0, log C]."""
    log_p = log_probabilities(logits)
    return -(np.exp(log_p) * log_p).sum(-1)


def modified_entropies(
    logits: Float64[np.ndarray, "... N C"], labels_N: Int64[np.ndarray, " N"]
) -> np.ndarray:
    r"""Return ``-(1 - p_y) log p_y - \sum_{c \ne y} p_c log(1 - p_c)`` of each record, in nats, at least 0.

    Source: Song and Mittal (2021), "Systematic evaluation of privacy risks of machine learning models"
    ("Mentr").
    """
    log_p = log_probabilities(logits)
    # 1 - p_c is the sum of the others: subtracting from 1 would leave nothing of a confident prediction
    log_rest = _log_of_others(log_p)
    each = -np.exp(log_p) * log_rest
    mine = -np.exp(of_label(log_rest, labels_N)) * of_label(log_p, labels_N)
    return mine + each.sum(-1) - of_label(each, labels_N)


def rescaled_logits(logits: Float64[np.ndarray, "... N C"], labels_N: Int64[np.ndarray, " N"]) -> np.ndarray:
    r"""Return ``log(p_y / (1 - p_y))`` of each record: nearly Gaussian over models, unlike the loss.

    It is ``z_y - log \sum_{c \ne y} e^{z_c}``, which no confidence makes infinite.

    Source: Carlini et al. (2022), "Membership inference attacks from first principles", the logit scaling of the
    confidence.
    """
    return of_label(logits, labels_N) - of_label(_log_of_others(logits), labels_N)


def hinges(logits: Float64[np.ndarray, "... N C"], labels_N: Int64[np.ndarray, " N"]) -> np.ndarray:
    r"""Return ``z_y - \max_{c \ne y} z_c`` of each record: what is left of the rescaled logit without a scale.

    Source: Carlini et al. (2022), the hinge of unnormalised logits.
    """
    others = np.array(logits)
    np.put_along_axis(others, _index(others, labels_N), -np.inf, axis=-1)
    return of_label(logits, labels_N) - others.max(-1)


def _index(values: np.ndarray, labels_N: np.ndarray) -> np.ndarray:
    return np.broadcast_to(labels_N[:, None], (*values.shape[:-1], 1))


def _log_of_others(values: Float64[np.ndarray, "... N C"]) -> Float64[np.ndarray, "... N C"]:
    """Return, for each class, the logarithm of the sum of the exponentials of all others."""
    classes = values.shape[-1]
    others = [np.delete(values, c, axis=-1) for c in range(classes)]
    return np.stack([_log_sum(left) for left in others], axis=-1)


def _log_sum(values: np.ndarray) -> np.ndarray:
    top = values.max(-1, keepdims=True)
    return top[..., 0] + np.log(np.maximum(np.exp(values - top).sum(-1), _LEAST))
