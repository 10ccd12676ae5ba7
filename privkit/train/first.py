"""What every client of a run starts from: the network's own parameters, with a head that public vectors may decide."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from privkit.data._split import Parts
from privkit.errors import InputError
from privkit.models._base import AbstractEncoder
from privkit.network import Network
from privkit.train.encoded import Encoded


def first_parameters(
    network: Network, encoder: AbstractEncoder, data: Encoded, split: Sequence[Parts], *, seed: int
) -> dict[str, np.ndarray]:
    """Return the initial parameters of every client with an architecture, without client axis, float32.

    Args:
        network: what is trained.
        encoder: in front of it.
        data: what it is trained on.
        split: of the domain of each client.
        seed: of the run.

    Raises:
        InputError: a transform does not fit the embeddings, or the vectors that the head should begin as cannot be had.
    """
    start = network.start(dim=data.dim, num_classes=data.num_classes, seed=seed)
    match network.settings.first_head:
        case "random":
            return start
        case "records":
            return network.headed(start, _unit(_of_records(data, split)))
        case sentences:
            return network.headed(start, _unit(_of_sentences(sentences, encoder, data.num_classes)))


def _of_records(data: Encoded, split: Sequence[Parts]) -> Float64[np.ndarray, "C d"]:
    """Return the mean direction of each class over the public records of all clients' domains."""
    x = np.concatenate([data.x[m][part.reference] for m, part in enumerate(split)]).astype(np.float64)
    y = np.concatenate([data.y[m][part.reference] for m, part in enumerate(split)])
    counts = np.bincount(y, minlength=data.num_classes)
    if not counts.all():
        raise InputError(
            f"first_head: records found no public record of class {int(counts.argmin())}; raise split.reference, or "
            "set model.first_head to random."
        )
    unit = _unit(x)
    return np.stack([unit[y == c].mean(0) for c in range(data.num_classes)])


def _of_sentences(
    sentences: Sequence[str], encoder: AbstractEncoder, num_classes: int
) -> Float64[np.ndarray, "C d"]:
    """Return the embedding of what is said of each class."""
    if len(sentences) != num_classes:
        raise InputError(
            f"first_head has {len(sentences)} sentences for {num_classes} classes; give one for each, in their order."
        )
    return encoder.encode(np.array(sentences, np.str_)).astype(np.float64)


def _unit(x_Nd: Float64[np.ndarray, "N d"]) -> Float64[np.ndarray, "N d"]:
    """Return vectors of length 1; a vector of zeros stays one."""
    length_N1 = np.linalg.norm(x_Nd, axis=1, keepdims=True)
    return x_Nd / np.where(length_N1 > 0, length_N1, 1.0)
