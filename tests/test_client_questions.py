"""Is a record in a client's data set? Asked of all rounds together, one round's passes at a time."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from attacks._base import AbstractAttack
from attacks.gradient._base import GradientAttack
from privkit import plug
from privkit.audit.by_round import ByRound
from privkit.audit.cells import cells
from privkit.audit.choice import every_attack
from privkit.audit.run import audit
from privkit.audit.scored import RunView
from privkit.errors import InputError
from privkit.exposure import BatchRecords, ClientRecords
from privkit.finetune import questions
from privkit.finetune.loop import train
from privkit.finetune.replay import lab_of
from privkit.finetune.view import by_round, view
from privkit.store import Run
from reports.figures import rounds
from tests import gradient_lab as lab
from tests import gradient_scene as scene
from tests.finetuned import config

ASKED = {"kind": "client", "clients": 2, "records": 20}
ON_GRADIENTS = [a for a in every_attack() if isinstance(a, AbstractAttack) and a.reads == "gradients"]


def quiet(stage: str, done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = config(questions=ASKED, rounds=3, defense={"name": "dpsgd", "noise_multiplier": 2.0})
    return train(made, tmp_path_factory.mktemp("client") / "run", device="cpu")


def test_members_are_trained_on_and_others_never_are(run):
    found, asked, members = lab_of(run), questions.read(run), run.truth().members
    assert isinstance(asked, ClientRecords)
    assert not isinstance(asked, BatchRecords)
    for client in (0, 1):
        parts, own = found.clients[client].parts, asked.clients == client
        assert set(asked.rows[own & members]) <= set(parts.members)
        assert set(asked.rows[own & ~members]) <= set(parts.non_members)
        assert (own & members).sum() == (own & ~members).sum() == min(20, len(parts.members))
        assert (np.diff(asked.rows[own]) > 0).all()


def test_every_round_holds_one_round(run):
    asked, seen = questions.read(run), list(by_round(run))
    assert [round for round, _ in seen] == [0, 1, 2]
    for round, one in seen:
        assert list(one.asked) == list(one.public) == list(one.weights) == one.rounds == [round]
        assert len(one.asked[round].losses) == len(asked)
    whole = view(run)
    assert not whole.asked
    assert whole.losses.shape == (len(asked), 4)
    for round, one in seen:
        np.testing.assert_allclose(one.asked[round].losses, whole.losses[:, round], rtol=1e-4)


def test_rounds_can_be_left_out_and_are_all_by_default():
    assert config(questions=ASKED).asked_rounds == (0, 1, 2)
    assert config(questions=ASKED | {"rounds": [2, 0]}).asked_rounds == (0, 2)
    assert config(questions={"kind": "batch"}).asked_rounds == (2,)
    with pytest.raises(InputError, match="kind='user'"):
        config(questions={"kind": "user"})


def test_scores_are_those_of_all_rounds_at_once(run):
    """Round by round, and fused, is what an attack says of a view that holds all passes."""
    parts = dict(by_round(run))
    whole = replace(
        parts[0],
        releases=tuple(r for one in parts.values() for r in one.releases),
        **{
            name: {t: getattr(one, name)[t] for t, one in parts.items()}
            for name in ("asked", "public", "weights")
        },
    )
    asked, seen = questions.read(run), RunView.of(run)
    named = ("matched_filter", {"name": "gradient_cosine", "rounds": "mean"}, "projres")
    several = [found for n in named if isinstance(found := plug.build("attacks.gradient", n), GradientAttack)]
    seen.prepare(several, quiet)
    for attack in several:
        found = seen.score(attack)
        np.testing.assert_allclose(found.whole, attack.score(whole, asked), rtol=1e-6, atol=1e-9)
        assert sorted(found.each) == sorted(found.until) == [0, 1, 2]
        np.testing.assert_array_equal(found.until[0], found.each[0])
        np.testing.assert_array_equal(found.until[2], found.whole)


def test_a_round_is_passed_once_for_all_attacks(run, monkeypatch):
    passed = []
    monkeypatch.setattr(
        "privkit.audit._tuned.by_round", lambda run: (passed.append(t) or (t, v) for t, v in by_round(run))
    )
    asked = questions.read(run)
    assert isinstance(asked, ClientRecords)
    several = [a for a in ON_GRADIENTS if isinstance(a, GradientAttack)]
    found = ByRound(run, asked)
    found.score(several, quiet)
    found.score(several, quiet)
    assert passed == [0, 1, 2]
    assert all(len(found.of(a)) == 3 for a in several if a.name != "fedmia")


def test_an_audit_asks_it_and_holds_it_against_the_claim_of_all_rounds(run):
    (cell,) = audit(run.path).cells
    asked = {t.attack: t for t in cell.taken}
    assert set(asked) == {a.label for a in ON_GRADIENTS}
    mu = 3**0.5 * 2 / 2.0  # three rounds, and replacing a record moves a sum by two clip norms
    for found in asked.values():
        if not found.reason:
            assert found.auc_ceiling == pytest.approx(norm.cdf(mu / 2**0.5))
            assert found.predicted is None
    filtered = asked["matched_filter"]
    assert len(filtered.by_round) == len(filtered.cumulative) == 3
    assert filtered.auc is not None
    assert filtered.cumulative[-1] == pytest.approx(filtered.auc.value)
    assert rounds.rounds(cell, {t.attack: i for i, t in enumerate(cell.taken)}, auc=(0.0, 1.0)) is not None
    assert cells([run])[0].name == cell.name


def test_more_rounds_give_a_data_set_away():
    """Largest score over rounds: a mean drowns the few rounds in which a record was in the batch."""
    rng, bank = np.random.default_rng(1), scene.bank(400)
    view, records, members = lab.data_set(bank, rng, rounds=24, batch=6, records=60, public=150)
    most, mean = (
        plug.build("attacks.gradient", {"name": "matched_filter", "rounds": r}) for r in ("max", "mean")
    )
    assert isinstance(most, GradientAttack)
    assert isinstance(mean, GradientAttack)
    each = np.stack([most.score(view.only(t), records) for t in range(24)])

    def area(attack: GradientAttack, until: int) -> float:
        return float(roc_auc_score(members, attack.over_rounds(each[:until])))

    found = [area(most, r) for r in (1, 4, 12, 24)]
    assert found == sorted(found)
    assert found[0] < 0.65
    assert found[-1] > 0.9
    assert area(mean, 24) < found[-1] - 0.02
