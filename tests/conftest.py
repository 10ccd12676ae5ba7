"""What every test shares: one thread, a feature cache of its own, hypothesis without a clock, a tiny run."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from accountant.contract import Contract, Counts, DependsOn
from accountant.events import Gaussian

os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch reads it when it is imported
settings.register_profile("privkit", deadline=None, print_blob=True)
settings.load_profile("privkit")


def pytest_configure(config: pytest.Config) -> None:
    """Let strategies build checked values: beartype draws samples with ``random``, which hypothesis reseeds."""
    config.addinivalue_line("filterwarnings", "ignore:Do not use the .random. module inside strategies")


@pytest.fixture(scope="session", autouse=True)
def feature_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep encoded features in a folder of this session's."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRIVKIT_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete recorded run, to read: two clients, two rounds, two classes, four canaries in R^3.

    Its mechanism is right: clip to 1, mean, noise of twice the sensitivity.
    """
    from privkit import Recorder
    from privkit.clip import clip_to_ball
    from privkit.release import Prototypes

    path = tmp_path_factory.mktemp("recorded") / "tiny run"
    rng = np.random.default_rng(0)
    z, y = rng.standard_normal((2, 6, 3)), np.array([0, 0, 0, 1, 1, 1])
    contract = Contract(
        clip_norm=1.0,
        encoder=DependsOn.PUBLIC,
        assignment=DependsOn.PUBLIC,
        counts=Counts.PUBLIC,
        hyperparameters=DependsOn.PUBLIC,
        fresh_noise=True,
    )
    with Recorder(
        path,
        clients=2,
        rounds=2,
        num_classes=2,
        dim=3,
        promise=(8.0, 1e-5),
        canaries=4,
        canary_norm=3.0,
    ) as recorder:
        candidates = np.concatenate([z[0], z[1], rng.standard_normal((12, 3))])
        recorder.ask(
            candidates, np.tile(y, 4), np.repeat([0, 1, 0, 1], 6), np.arange(24) < 12, reference=(z[0], y, y)
        )
        for t in range(2):
            for m in range(2):
                vectors, labels = recorder.plant(m, z[m], y)
                clipped = clip_to_ball(vectors, norm=1.0)
                classes, counts = np.unique(labels, return_counts=True)
                means = np.stack([clipped[labels == c].mean(0) for c in classes])
                noise = 2.0 * (2.0 / counts)[:, None] * rng.standard_normal(means.shape)
                payload = Prototypes(vectors=means + noise, labels=classes, counts=counts)
                event = Gaussian(noise_multiplier=2.0, contract=contract)
                recorder.record(round=t, client=m, payload=payload, event=event)
    return path


@pytest.fixture
def recorded_copy(recorded: Path, tmp_path: Path) -> Path:
    """A copy of the recorded run, to damage."""
    return Path(shutil.copytree(recorded, tmp_path / "copy"))
