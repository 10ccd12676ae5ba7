"""What is public of the model that the clients of a run train: its settings, as its configuration has them."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from privkit.config import RunConfig
from privkit.store import Run
from privkit.transcript import Setup
from privkit.transforms.rotation import Rotation

if TYPE_CHECKING:
    from privkit.transforms._base import AbstractTransform


def config_of(run: Run) -> RunConfig | None:
    """Return the configuration of a run that `privkit train` made; ``None`` of one that other code recorded."""
    settings = dict(run.info.config)
    if not {"data", "encoder", "method", "defense"} <= set(settings):
        return None
    return RunConfig.from_settings(settings, where=str(run.path))


def setup_of(run: Run) -> Setup:
    """Return the public settings of a run's model; those of a plain head where they are not known."""
    config = config_of(run)
    if config is None or config.mixed is not None:
        return Setup()
    model = config.model
    if model.transform is not None:
        mapped = partial(_mapped, model.transform)
        return Setup(
            temperature=model.temperature,
            before=model.transform.in_words,
            parameters="transform.",
            mapped=mapped,
            blocks=model.transform.blocks if isinstance(model.transform, Rotation) else 1,
        )
    if model.adapter is not None:
        return Setup(temperature=model.temperature, before="adapter", parameters="adapter.")
    return Setup(temperature=model.temperature)


def _mapped(
    transform: "AbstractTransform", named: Mapping[str, np.ndarray], vectors_Nd: np.ndarray
) -> np.ndarray:
    """Return what a map with some parameters makes of vectors, in float64."""
    import torch

    with torch.no_grad():
        own = {name: torch.from_numpy(np.array(p, dtype=np.float64))[None] for name, p in named.items()}
        return transform.apply(own, torch.from_numpy(vectors_Nd.astype(np.float64))[None])[0].numpy()
