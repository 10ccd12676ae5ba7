"""Bad input to an audit, one case each: refused or n/a with its reason; what broke is listed, the others still run."""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from attacks.canary.antipodal import Antipodal
from attacks.membership.cosine import Cosine
from attacks.membership.distance import Distance
from attacks.membership.shadow import Shadow
from attacks.statistics.certify import NoCertificate
from privkit import Recorder
from privkit.audit.run import audit
from privkit.cli import main
from privkit.errors import InputError
from privkit.models._backbone import Backbone
from privkit.models._pixels import Reading
from privkit.release import Prototypes
from privkit.store import Run
from privkit.truth import Truth
from reports import audit_files, audit_table
from reports.findings import Findings, Taken, Verdict

CHOSEN = (Cosine(), Distance(), Antipodal())


def of(found: Findings, attack: str) -> Taken:
    return next(taken for taken in found.cells[0].taken if taken.attack == attack)


def scoring(monkeypatch: pytest.MonkeyPatch, scores: Callable[[int], Any]) -> None:
    """Let one attack give other scores."""
    monkeypatch.setattr(Cosine, "score", lambda self, view, candidates: scores(len(candidates)))


def answering(monkeypatch: pytest.MonkeyPatch, **changes: Callable[[np.ndarray], np.ndarray]) -> None:
    """Let every run have other answers."""
    truth = Run.truth

    def changed(self: Run) -> Truth:
        found = truth(self)
        return replace(found, **{name: change(getattr(found, name)) for name, change in changes.items()})

    monkeypatch.setattr(Run, "truth", changed)


@pytest.mark.parametrize(
    ("scores", "cause"),
    [
        (lambda n: np.where(np.arange(n) == 2, np.nan, 0.5), r"cosine\[2\] is NaN"),
        (lambda n: np.where(np.arange(n) == 3, np.inf, 0.5), r"cosine\[3\] is inf"),
        (lambda n: np.arange(n - 1.0), "returned 23 scores for 24 candidates"),
        (lambda n: np.ones((n, 2)), "cosine"),
        (lambda n: np.array(["member"] * n), "cosine"),
        (lambda n: np.full(n, 1j), "cosine"),
    ],
    ids=["nan", "infinite", "too few", "two columns", "texts", "complex"],
)
def test_scores_that_are_none_are_a_failed_attack_and_the_others_run(
    recorded_copy: Path, monkeypatch: pytest.MonkeyPatch, scores: Callable[[int], Any], cause: str
) -> None:
    scoring(monkeypatch, scores)
    found = audit(recorded_copy, attacks=CHOSEN)
    (sentence,) = found.failed
    assert sentence.startswith("cosine on tiny run: ")
    assert re.search(cause, sentence)
    assert of(found, "cosine").auc is None
    assert of(found, "cosine").reason.startswith("failed: ")
    assert of(found, "distance").auc is not None
    assert of(found, "antipodal").auc is not None
    assert sentence in audit_files.markdown(found)


def test_a_failed_attack_makes_the_command_exit_with_6(
    recorded_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scoring(monkeypatch, lambda n: np.full(n, np.nan))
    arguments = ["audit", "--run", str(recorded_copy), "--attacks", "cosine,distance,antipodal"]
    monkeypatch.setattr(sys, "argv", ["privkit", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 6
    assert "cosine on tiny run: ValueError: cosine[0] is NaN" in " ".join(capsys.readouterr().out.split())


def test_constant_scores_are_no_number_with_a_reason(
    recorded_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scoring(monkeypatch, lambda n: np.full(n, 0.25))
    found = audit(recorded_copy, attacks=CHOSEN)
    assert not found.failed
    assert of(found, "cosine").auc is None
    assert of(found, "cosine").reason == "every candidate has the score 0.25: it tells none from another"
    row = next(row for row in audit_table.attacks(found).rows if row["attack"] == "cosine")
    assert row["auc_text"] == "n/a"


@pytest.mark.parametrize(("all_are", "reason"), [(True, "no non-members"), (False, "no members")])
def test_one_class_of_records_leaves_no_number_and_a_reason(
    recorded_copy: Path, monkeypatch: pytest.MonkeyPatch, all_are: bool, reason: str
) -> None:
    answering(monkeypatch, members=lambda members: np.full_like(members, all_are))
    found = audit(recorded_copy, attacks=CHOSEN)
    assert not found.failed
    for name in ("cosine", "distance"):
        taken = of(found, name)
        assert taken.auc is not None
        assert (taken.auc.value, taken.auc.note) == (None, reason)
        assert taken.tpr is not None
        assert taken.tpr.estimate.value is None
        assert reason in taken.tpr.estimate.note
        assert (
            taken.reason
            == f"there are {reason} among the candidates; ask about members and non-members of every run"
        )
        assert (taken.auc_ceiling, taken.tpr_ceiling) == (None, None)
    assert of(found, "antipodal").auc is not None


@pytest.mark.parametrize("sign", [True, False])
def test_canaries_of_one_answer_are_no_evidence_and_say_so(
    recorded_copy: Path, monkeypatch: pytest.MonkeyPatch, sign: bool
) -> None:
    answering(monkeypatch, canary_signs=lambda signs: np.full_like(signs, sign))
    found = audit(recorded_copy, attacks=CHOSEN)
    assert not found.failed
    taken = of(found, "antipodal")
    assert taken.auc is not None
    assert taken.auc.value is None
    assert all(one.reason for one in taken.certificates if isinstance(one, NoCertificate))
    assert {type(one) for one in taken.certificates[:4]} == {NoCertificate}
    assert found.verdict is Verdict.INCONCLUSIVE


def test_a_rate_that_so_few_non_members_cannot_show_is_no_number(recorded_copy: Path) -> None:
    taken = of(audit(recorded_copy, attacks=CHOSEN), "distance")  # 12 non-members, and 1 % wants 100
    assert taken.tpr is not None
    assert taken.tpr.estimate.value is None
    assert "100" in taken.tpr.estimate.note
    assert taken.auc is not None
    assert taken.auc.value is not None


def asking(path: Path, vectors: np.ndarray, members: np.ndarray) -> Recorder:
    """Return a recorder that was asked about records of one client and class."""
    recorder, whole = (
        Recorder(path, clients=1, rounds=1, num_classes=1, dim=3),
        np.zeros(len(vectors), np.int64),
    )
    recorder.ask(vectors, whole, whole, members)
    return recorder


def test_a_member_that_is_a_non_member_as_well_is_refused_when_asked_about_and_when_audited(
    tmp_path: Path, recorded_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    z = np.random.default_rng(0).standard_normal((4, 3))
    twice, members = np.concatenate([z, z[:1]]), np.arange(5) < 4
    sentence = "candidates 0 and 4 are the same record, one a member and one not; remove one"
    with pytest.raises(InputError, match=sentence):
        asking(tmp_path / "refused", twice, members)
    recorder = asking(tmp_path / "run", twice, np.ones(5, dtype=bool))
    record_one_class(recorder, Run(recorded_copy))
    answering(monkeypatch, members=lambda _: members)
    with pytest.raises(InputError, match=sentence):
        audit(tmp_path / "run", attacks=CHOSEN)


def test_too_few_shadows_are_named_and_the_others_run(tmp_path: Path, recorded_copy: Path) -> None:
    rng, whole = np.random.default_rng(0), np.zeros(8, np.int64)
    recorder = Recorder(tmp_path / "run", clients=1, rounds=1, num_classes=1, dim=3)
    owned = (rng.standard_normal((20, 3)), np.zeros(20, np.int64), np.zeros(20, np.int64))
    recorder.ask(rng.standard_normal((8, 3)), whole, whole, np.arange(8) < 4, reference=owned)
    record_one_class(recorder, Run(recorded_copy))
    found = audit(tmp_path / "run", attacks=[Shadow(shadows=1), Cosine()])
    assert not found.failed
    assert of(found, "shadow").auc is None
    assert of(found, "shadow").reason == "1 shadow prototype has no covariance; simulate at least 2"
    assert of(found, "cosine").auc is not None
    enough = audit(tmp_path / "run", attacks=[Shadow(shadows=20)])
    assert of(enough, "shadow").auc is not None


def record_one_class(recorder: Recorder, other: Run) -> None:
    """Record what another run's first client said of class 0."""
    release = other.transcript().releases[0]
    assert isinstance(release.payload, Prototypes)
    only = release.payload.only(release.payload.labels == 0)
    recorder.record(round=0, client=0, payload=only, event=release.event)


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        (np.ones(4), "type float64; give one truth value per record"),
        (np.ones(3, dtype=bool), r"shape \(3,\)"),
        (np.ones((4, 1), dtype=bool), r"shape \(4, 1\)"),
    ],
)
def test_answers_of_another_type_or_shape_are_refused(
    tmp_path: Path, members: np.ndarray, complaint: str
) -> None:
    recorder = Recorder(tmp_path / "run", clients=1, rounds=1, num_classes=1, dim=3)
    whole = np.zeros(4, np.int64)
    with pytest.raises(InputError, match=complaint):
        recorder.ask(np.zeros((4, 3)), whole, whole, members)


@pytest.mark.parametrize(
    ("vectors", "labels", "complaint"),
    [
        (np.zeros((4, 3), dtype=int), np.zeros(4, np.int64), "vectors has shape .* and type int64"),
        (np.zeros((4, 2)), np.zeros(4, np.int64), "do not fit"),
        (np.zeros((4, 3)), np.zeros(4), "labels has shape .* and type float64"),
        (np.full((4, 3), np.nan), np.zeros(4, np.int64), r"vectors\[0, 0\] is nan"),
    ],
)
def test_questions_of_another_type_or_shape_are_refused(
    tmp_path: Path, vectors: np.ndarray, labels: np.ndarray, complaint: str
) -> None:
    recorder = Recorder(tmp_path / "run", clients=1, rounds=1, num_classes=1, dim=3)
    with pytest.raises(InputError, match=complaint):
        recorder.ask(vectors, labels, np.zeros(4, np.int64), np.ones(4, dtype=bool))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--run", __file__], "test_bad_input.py is no folder; give a folder that `privkit train`"),
        (["--run", "nowhere"], "nowhere does not exist; give a folder that `privkit train`"),
        (["--run", ".", "--attacks", "fsha"], "attack fsha is of split learning; run `privkit hijack"),
    ],
)
def test_what_cannot_be_audited_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["privkit", "audit", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err


def test_an_encoder_that_is_told_to_train_stays_in_evaluation_mode() -> None:
    """Else a record's features would follow its neighbours in the batch, and a loss would name the batch."""
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(48)
    layers = nn.Sequential(nn.Flatten(), norm, nn.Dropout(0.5), nn.Linear(48, 5))
    encoder = Backbone(layers, [], reading=Reading(channels=3, side=4, mean=(0.0,), deviation=(1.0,)), dim=5)
    images, others = torch.rand(2, 3, 4, 4), torch.rand(6, 3, 4, 4)
    alone, statistics = encoder(images), [buffer.clone() for buffer in norm.buffers()]
    nn.Sequential(encoder).train()
    assert torch.equal(encoder(torch.cat([images, others]))[:2].round(decimals=5), alone.round(decimals=5))
    assert all(map(torch.equal, norm.buffers(), statistics))
    assert not any(module.training for module in encoder.modules())
