"""The pictures behind the records of a run, and small PNGs of them for a reader."""

import base64
import io
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float32

from attacks._base import NotApplicableError
from privkit.config import RunConfig
from privkit.data._base import Domain
from privkit.data._split import Parts
from privkit.models._cache import sha256_of
from privkit.store import Run
from privkit.study import Plan
from privkit.train.encoded import Encoded, Inputs
from privkit.train.study import parts
from privkit.transcript import Records

LONGEST = 96


def pictures(
    run: Run, config: RunConfig, records: Records, rows: Callable[[Parts], np.ndarray]
) -> Float32[np.ndarray, "N channels height width"]:
    """Return the picture behind each of some records as the encoder reads it, pixels in [0, 1].

    Args:
        run: a run that was trained from ``config``.
        config: its data and split.
        records: whose pictures; client after client.
        rows: the rows of a domain that they are, in their order, from its split.

    Raises:
        NotApplicableError: the data set gives other images than those the run was trained on.
        InputError: the encoder reads no images.
    """
    every = config.data.load()
    domains = [domain for domain in every if domain.name != config.held_out]
    for domain in domains:
        if run.info.data.get(f"records.{domain.name}") != sha256_of(domain.records):
            raise NotApplicableError(
                f"the images of {domain.name} are not those the run was trained on; restore the data set"
            )
    chosen = [rows(split) for split in _split(run, config, every)]
    labels = np.concatenate([d.labels[r] for d, r in zip(domains, chosen, strict=True)])
    if not np.array_equal(labels, records.labels):
        raise NotApplicableError("the split gives other records than candidates/ holds; restore candidates/")
    read = [config.encoder.pixels(d.records[r]) for d, r in zip(domains, chosen, strict=True)]
    return np.concatenate(read).astype(np.float32) / 255


def asked(split: Parts) -> np.ndarray:
    """Return the rows of a domain that attacks are asked about, in their order."""
    return np.sort(np.concatenate([split.members, split.non_members]))


def owned(split: Parts) -> np.ndarray:
    """Return the rows of a domain that the attacker owns, in their order."""
    return split.reference


def _split(run: Run, config: RunConfig, domains: Sequence[Domain]) -> list[Parts]:
    """Return how a run divided every domain."""
    none = np.zeros((0, 0), np.float32)
    own = tuple(Inputs(none, domain.labels) for domain in domains)
    labelled = Encoded(  # a split needs labels only
        names=tuple(domain.name for domain in domains),
        own=own,
        test=tuple(
            mine if d.test is None else Inputs(none, d.test.labels)
            for d, mine in zip(domains, own, strict=True)
        ),
        things=tuple(domain.things for domain in domains),
        num_classes=config.data.num_classes,
        hashes={},
    )
    if config.held_out is not None:
        labelled = labelled.without(config.held_out)
    return parts(Plan(name=".", cell=run.info.cell, seed=run.info.seed or 0, config=config), labelled)


def png(pixels: np.ndarray) -> str:
    """Return an image as a base64 PNG, made smaller if a side is longer than 96 pixels.

    Args:
        pixels: grey [height, width], or one or three channels [c, height, width]; values in [0, 1].
    """
    from PIL import Image

    levels = np.rint(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
    if levels.ndim == 3:
        levels = levels[0] if len(levels) == 1 else levels.transpose(1, 2, 0)
    picture = Image.fromarray(levels)
    picture.thumbnail((LONGEST, LONGEST))
    content = io.BytesIO()
    picture.save(content, format="PNG", optimize=True)
    return base64.b64encode(content.getvalue()).decode("ascii")
