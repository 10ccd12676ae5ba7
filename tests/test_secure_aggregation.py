"""An audit of a federation whose server sees sums only: one upload holds the batches, and the noise, of all clients."""

import numpy as np
import pytest
from scipy.stats import norm

from attacks.gradient._seen import seen
from privkit.audit.run import audit
from privkit.finetune import questions
from privkit.finetune.loop import TOGETHER, train
from privkit.finetune.replay import lab_of
from privkit.finetune.view import view
from privkit.store import Run
from reports.findings import CellFindings
from tests.finetuned import config

SIGMA = 0.5


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = config(
        secure_aggregation=True,
        rounds=2,
        sampling="poisson",
        aggregation="equal",
        questions={"clients": 3, "rounds": [0, 1]},
        defense={"name": "dpsgd", "noise_multiplier": SIGMA},
    )
    return train(made, tmp_path_factory.mktemp("sums") / "run", device="cpu")


@pytest.fixture(scope="module")
def cell(run: Run) -> CellFindings:
    findings = audit(run.path)
    assert not findings.failed
    (found,) = findings.cells
    return found


def test_one_upload_holds_every_client_s_batch_and_noise(run):
    server, asked, members = view(run, losses=False), questions.read(run), run.truth().members
    assert (server.batch_size, server.senders, run.info.clients) == (12, 3, (TOGETHER,))
    assert [(r.round, r.client) for r in server.releases] == [(0, 0), (1, 0)]
    lab = lab_of(run)
    for upload in seen(server, asked):
        assert upload.noise.std == pytest.approx(SIGMA * 3**0.5)
        mine = upload.rows[members[upload.rows]]
        for client in range(3):
            drawn = np.concatenate(lab.rows(upload.release.round, client))
            assert set(asked.rows[mine][asked.domains[mine] == client]) == set(drawn)


def test_attacks_run_on_the_sum_below_the_ceiling_of_one_client_s_own_noise(cell):
    """It holds even for a server that all other clients collude with."""
    ceiling = norm.cdf(1 / (SIGMA * 2**0.5))
    asked = [t for t in cell.taken if not t.reason]
    assert {t.attack for t in cell.taken} - {t.attack for t in asked} == {"fedmia"}
    (alone,) = [t for t in cell.taken if t.attack == "fedmia"]
    assert "0 other clients sent the same maps" in alone.reason
    for found in asked:
        assert found.auc_ceiling == pytest.approx(ceiling)
        assert found.adjusted_p is None or found.adjusted_p > 0.001
    (filtered,) = [t for t in asked if t.attack == "matched_filter"]
    assert filtered.predicted is not None
    assert filtered.predicted < ceiling
    assert [rate is not None for rate in filtered.by_round] == [True, True]
