"""FPL and FedPLVM trained and audited end to end: any number of prototypes of a class, in batches and after a stop."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from attacks.canary.antipodal import Antipodal
from attacks.membership.cosine import Cosine
from attacks.membership.distance import Distance
from attacks.membership.inner_product import InnerProduct
from attacks.membership.likelihood_ratio import LikelihoodRatio
from attacks.membership.tracing import Tracing
from privkit.audit.run import audit
from privkit.prototypes.finch import Finch
from privkit.release import Prototypes
from privkit.store import Run
from privkit.study import Study, load
from privkit.train.loop import train
from reports.findings import CellFindings, Verdict
from tests.test_train import assert_same

VPDR = {"name": "vpdr", "epsilon": 8.0, "partition": "random"}
SETTINGS: dict[str, Any] = {
    "data": {"name": "digits", "domains": ["mnist", "syn"], "per_class": 30},
    "encoder": {"name": "usps_cnn"},
    "method": {"name": "fedplvm", "predict": "prototype"},
    "defense": {"name": "none"},
    "canaries": {"count": 64, "norm": 3.0},
    "rounds": 2,
    "seeds": 2,
    "cells": {
        "means": {
            "method": {"name": "fpl", "predict": "prototype"},
            "defense": {"name": "igpp", "epsilon": 8.0},
        },
        "fpl": {"model": {"adapter": 4}, "method": {"name": "fpl"}, "defense": VPDR},
        "plain": {},
        "igpp": {"defense": {"name": "igpp", "epsilon": 8.0}},
        "vpp": {"defense": {"name": "vpp", "epsilon": 8.0}},
        "vpdr": {"model": {"adapter": 4}, "defense": VPDR},
        "kmeans": {"method": {"prototypes": {"name": "kmeans"}}, "defense": {"name": "igpp", "epsilon": 8.0}},
    },
}


@pytest.fixture(scope="module", autouse=True)
def fast_disk() -> Iterator[None]:
    """Wait for no disk: only a power cut needs that, a stop does not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


def study(folder: Path, *cells: str, seeds: int = 2) -> Study:
    """Return the study of some cells, or of all."""
    folder.mkdir(exist_ok=True)
    path, chosen = folder / "study.yaml", cells or tuple(SETTINGS["cells"])
    settings = {**SETTINGS, "seeds": seeds, "cells": {name: SETTINGS["cells"][name] for name in chosen}}
    path.write_text(yaml.safe_dump(settings, sort_keys=False))
    return load(path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clustered")
    train(study(folder), folder / "runs", device="cpu")
    return folder / "runs"


@pytest.fixture(scope="module")
def audited(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, CellFindings]:
    copy = shutil.copytree(runs, tmp_path_factory.mktemp("audited") / "runs")
    attacks = (Cosine(), Distance(), InnerProduct(), LikelihoodRatio(), Tracing(), Antipodal())
    return {cell.name: cell for cell in audit(copy, attacks=attacks).cells}


def sent(path: Path, *, round: int, client: int) -> Prototypes:
    (payload,) = (
        r.payload for r in Run(path).transcript().releases if (r.round, r.client) == (round, client)
    )
    assert isinstance(payload, Prototypes)
    return payload.only(payload.labels < 10)


def test_the_first_upload_is_the_clusters_of_the_members(runs):
    run = Run(runs / "plain/seed-0")
    asked, members = run.records("records"), run.truth().members
    assert asked is not None
    for client in (0, 1):
        found = sent(run.path, round=0, client=client)
        assert found.counts is not None
        for label in range(10):
            mine = members & (asked.clients == client) & (asked.labels == label)
            own = asked.vectors[mine].astype(np.float64)
            cluster = Finch().clusters(own)
            wanted = np.array([own[cluster == k].mean(0) for k in range(cluster.max() + 1)])
            got = found.vectors[found.labels == label]
            assert found.counts[found.labels == label].sum() == len(own)
            assert len(got) == len(wanted)
            order = [np.lexsort(v[:, :2].T.round(4)) for v in (got, wanted)]
            np.testing.assert_allclose(got[order[0]], wanted[order[1]], rtol=1e-4, atol=1e-5)
        assert len(found.labels) > 10


def test_fpl_sends_one_mean_per_class(runs):
    for round in range(2):
        assert sent(runs / "fpl/seed-1", round=round, client=1).labels.tolist() == list(range(10))


def test_a_frozen_encoder_without_noise_sends_the_same_every_round(runs):
    one, two = (sent(runs / "plain/seed-0", round=t, client=0) for t in range(2))
    assert np.array_equal(one.vectors, two.vectors)


def accuracy(path: Path) -> np.ndarray:
    return np.array(pq.read_table(path / "metrics.parquet")["accuracy"])


def test_prototypes_classify_better_than_chance(runs):
    for cell in ("means", "plain"):
        for seed in range(2):
            assert accuracy(runs / f"{cell}/seed-{seed}").mean() > 0.5


@pytest.mark.parametrize("cell", ["fpl", "plain", "vpdr"])
def test_a_run_trained_alone_is_the_run_trained_in_a_batch(runs, tmp_path, cell):
    """Runs of a batch have different numbers of clusters, and are filled up to the most."""
    train(study(tmp_path, cell, seeds=1), tmp_path / "runs", device="cpu")
    (path,) = (tmp_path / "runs").rglob("metrics.parquet")
    np.testing.assert_allclose(accuracy(path.parent), accuracy(runs / cell / "seed-0"), atol=1e-6)
    ours, theirs = sent(path.parent, round=1, client=0), sent(runs / cell / "seed-0", round=1, client=0)
    np.testing.assert_allclose(ours.vectors, theirs.vectors, rtol=1e-4, atol=1e-5)


class StoppedError(Exception):
    """Training was interrupted."""


@pytest.mark.parametrize("cell", ["fpl", "vpdr"])
def test_a_stopped_training_goes_on_to_the_same_bytes(tmp_path, cell):
    def stop(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("train", 1):
            raise StoppedError

    with pytest.raises(StoppedError):
        train(study(tmp_path / "a", cell), tmp_path / "a/runs", device="cpu", progress=stop)
    for folder in ("a", "b"):
        train(study(tmp_path / folder, cell), tmp_path / folder / "runs", device="cpu")
    assert_same(tmp_path / "a/runs", tmp_path / "b/runs")


# ---------------------------------------------------------------------- audited

slow = pytest.mark.slow  # the first of them audits seven cells


@slow
@pytest.mark.parametrize("cell", ["igpp", "vpp", "vpdr", "kmeans"])
def test_clusters_of_private_records_are_not_covered_whatever_the_noise(audited, cell):
    found = audited[cell]
    assert found.verdict is Verdict.NOT_COVERED
    assert found.promised is not None
    broken = {one.id: one.epsilon for one in found.promised.claim.broken}
    assert broken["A5"] == np.inf
    assert ("A1" in broken) == (cell == "vpdr")
    assert all(taken.auc_ceiling is None for taken in found.taken)


@slow
def test_class_means_under_a_frozen_encoder_are_covered(audited):
    found = audited["means"]
    assert found.promised is not None
    assert found.promised.claim.covered
    assert found.verdict in (Verdict.OK, Verdict.INCONCLUSIVE)


@slow
def test_no_attack_breaks_on_clusters_and_the_noise_is_what_was_claimed(audited):
    for found in audited.values():
        assert all(taken.auc is not None for taken in found.taken if not taken.reason)
        assert not [taken.reason for taken in found.taken if taken.reason]
        assert found.noise is None or found.noise.ratio == pytest.approx(1.0, abs=0.03)


@slow
def test_clusters_give_away_more_members_than_means_and_noise_hides_them(audited):
    area = {
        cell: next(t.auc.value for t in audited[cell].taken if t.attack == "likelihood_ratio")
        for cell in ("plain", "igpp")
    }
    assert area["plain"] > 0.8
    assert area["igpp"] < 0.6
