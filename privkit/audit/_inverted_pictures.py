"""Pictures for a reader: the images behind a run's members, and small PNGs of them."""

import base64
import io

import numpy as np

from attacks._base import NotApplicableError
from privkit.config import RunConfig
from privkit.models._cache import sha256_of
from privkit.store import Run
from privkit.train.encoded import Encoded, Inputs
from privkit.train.study import Plan, parts
from privkit.transcript import Records

LONGEST = 96


def member_images(run: Run, config: RunConfig, members: Records) -> np.ndarray:
    """Return the image behind each member record, uint8 of shape [N, height, width].

    Args:
        run: a run that was trained from ``config``.
        config: its data and split.
        members: its member records, in the order they were written in.

    Raises:
        NotApplicableError: the data set gives other images than those the run was trained on.
    """
    domains = config.data.load()
    for domain in domains:
        if run.info.data.get(f"records.{domain.name}") != sha256_of(domain.records):
            raise NotApplicableError(
                f"the images of {domain.name} are not those the run was trained on; restore the data set"
            )
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
    plan = Plan(name=".", cell=run.info.cell, seed=run.info.seed or 0, config=config)
    rows = [split.members for split in parts(plan, labelled)]
    labels = np.concatenate([d.labels[r] for d, r in zip(domains, rows, strict=True)])
    if not np.array_equal(labels, members.labels):
        raise NotApplicableError("the split gives other members than truth/ names; restore truth/")
    return np.concatenate([d.records[r] for d, r in zip(domains, rows, strict=True)])


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
