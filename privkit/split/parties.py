"""Who owns which images in a split-learning study."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from attacks.split._base import Public
from privkit.data._base import Domain
from privkit.data._split import divide
from privkit.errors import InputError
from privkit.split.settings import SplitSettings

_DIVISOR = 4  # sides are halved twice


@dataclass(frozen=True, eq=False, kw_only=True)
class Parties:
    """The client's images, and the server's.

    Attributes:
        images: private, pixels in [0, 1].
        labels: class of each; they are sent along with features.
        public: what the server owns.
    """

    images: Float[Tensor, "N c height width"]
    labels: Int64[Tensor, " N"]
    public: Public


def parties(settings: SplitSettings, seed: int) -> Parties:
    """Return the parties of one seed.

    Raises:
        InputError: records are no images of one size, their sides are no multiple of 4, or nobody owns public ones.
    """
    images, labels, private, public = [], [], [], []
    for client, domain in enumerate(settings.data.load()):
        split = divide(
            domain.labels,
            num_classes=settings.data.num_classes,
            shares=settings.split.shares,
            client=client,
            seed=seed,
            name=domain.name,
            tests=None if domain.test is None else domain.test.labels,
        )
        before = sum(map(len, labels))
        images.append(_pixels(domain))
        labels.append(domain.labels)
        private.append(before + split.members)
        public.append(before + split.reference)
    if len({one.shape[1:] for one in images}) > 1:
        raise InputError("domains have images of several sizes; name one of them in data.domains.")
    x, y = torch.from_numpy(np.concatenate(images)).float() / 255, torch.from_numpy(np.concatenate(labels))
    mine, theirs = (torch.from_numpy(np.concatenate(rows)) for rows in (private, public))
    if not len(theirs):
        raise InputError("split.reference leaves the server no public images; set it above 0.")
    return Parties(
        images=x[mine],
        labels=y[mine],
        public=Public(
            images=x[theirs], labels=y[theirs], classes=settings.data.num_classes, channels=settings.channels
        ),
    )


def _pixels(domain: Domain) -> UInt8[np.ndarray, "N c height width"]:
    """Return the images of a domain, channels first."""
    records = np.asarray(domain.records)
    grey, colour = records.ndim == 3, records.ndim == 4 and records.shape[-1] == 3
    if records.dtype != np.uint8 or not (grey or colour):
        raise InputError(
            f"domain {domain.name} holds no images of one size; split learning is attacked on images, such as data: "
            "digits."
        )
    found = records[:, None] if grey else np.ascontiguousarray(records.transpose(0, 3, 1, 2))
    if any(side % _DIVISOR for side in found.shape[2:]):
        raise InputError(
            f"domain {domain.name} has images of {found.shape[2]} x {found.shape[3]}; both must be multiples of "
            f"{_DIVISOR}."
        )
    return found
