"""What every attack on trained weights keeps to: a score per candidate, from what was sent and nothing else."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from attacks._base import NotApplicableError, ThreatModel
from attacks.model._base import ModelAttack
from attacks.statistics.auc import auc
from privkit import plug
from privkit.release import Prototypes, Update
from privkit.store import Run
from privkit.transcript import ServerView
from tests import heads
from tests.heads import CLASSES, CLIENTS, DIM, Scene

PACKAGE = "attacks.model"
NAMES = plug.names(PACKAGE)
WITH_SHADOWS = ("lira_offline", "lira_online", "loss_trajectory", "rmia")


def build(name: str, **settings: object) -> ModelAttack:
    found = plug.build(PACKAGE, {"name": name, **settings})
    assert isinstance(found, ModelAttack)
    return found


every_attack = pytest.mark.parametrize("attack", [build(name) for name in NAMES], ids=NAMES)


@pytest.fixture(scope="module")
def leaking() -> Scene:
    return heads.scene()


def area(scores: np.ndarray, members: np.ndarray) -> float:
    return float(roc_auc_score(members, scores))


@every_attack
def test_it_declares_who_attacks_and_what_is_known(attack):
    assert isinstance(attack.threat, ThreatModel)
    assert attack.threat.tier == ("shadow" if attack.name in WITH_SHADOWS else "public")
    assert attack.reads == "weights"
    assert attack.asks_about == "records"
    assert attack.citation
    assert plug.build(PACKAGE, attack.settings()) == attack


@every_attack
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_there_is_one_finite_float64_per_candidate(attack, leaking, dtype):
    asked = replace(leaking.records, vectors=leaking.records.vectors.astype(dtype))
    scores = attack.score(leaking.view, asked)
    assert scores.shape == (len(asked),)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert len(np.unique(scores)) > len(asked) / 4


@every_attack
def test_no_candidates_give_no_scores(attack, leaking):
    nobody = leaking.records.where(np.zeros(0, dtype=np.int64))
    assert attack.score(leaking.view, nobody).shape == (0,)


@every_attack
def test_a_permutation_of_candidates_permutes_their_scores(attack, leaking):
    order = np.random.default_rng(3).permutation(len(leaking.records))
    scores = attack.score(leaking.view, leaking.records)
    permuted = attack.score(leaking.view, leaking.records.where(order))
    np.testing.assert_allclose(permuted, scores[order], rtol=1e-9)


@every_attack
def test_a_score_does_not_depend_on_the_other_candidates(attack, leaking):
    scores = attack.score(leaking.view, leaking.records)
    for row in (0, len(scores) // 2, len(scores) - 1):
        alone = attack.score(leaking.view, leaking.records.where(np.array([row])))
        np.testing.assert_allclose(alone, scores[[row]], rtol=1e-8)


@every_attack
def test_scores_are_the_same_when_the_truth_is_deleted(attack, leaking, tmp_path):
    run = heads.saved(leaking, tmp_path / "run")

    def of_folder() -> np.ndarray:
        opened = Run(run.path)
        asked = opened.records("records")
        assert asked is not None
        return attack.score(opened.transcript().seen_by_server(opened.records("reference")), asked)

    with_truth = of_folder()
    shutil.rmtree(run.path / "truth")
    assert np.array_equal(of_folder(), with_truth)
    np.testing.assert_allclose(with_truth, attack.score(leaking.view, leaking.records), rtol=1e-9)


@every_attack
def test_an_overfitted_head_is_caught(attack, leaking):
    """The declared direction: higher means member."""
    scores = attack.score(leaking.view, leaking.records)
    found = auc(scores[leaking.members], scores[~leaking.members])
    assert found.low is not None
    assert found.low > 0.55


@pytest.fixture(scope="module")
def nulls() -> list[Scene]:
    return [heads.scene(seed, steps=30, leaks=False) for seed in range(40, 70)]


@every_attack
def test_intervals_cover_a_half_where_nobody_asked_about_was_trained_on(attack, nulls):
    covered, areas = 0, []
    for one in nulls:
        scores = attack.score(one.view, one.records)
        found = auc(scores[one.members], scores[~one.members])
        assert found.low is not None
        assert found.high is not None
        assert found.value is not None
        covered += found.low <= 0.5 <= found.high
        areas.append(found.value)
    # of 30 intervals at 95 %, 25 or fewer cover with probability 0.003
    assert covered > 25
    assert abs(np.mean(areas) - 0.5) < 4 * np.std(areas, ddof=1) / len(areas) ** 0.5


@every_attack
def test_a_round_alone_is_scored_like_a_run_of_that_round(attack, leaking):
    if attack.name == "loss_trajectory":
        with pytest.raises(
            NotApplicableError, match="1 round of trained weights is no trajectory; at least 2"
        ):
            attack.score(leaking.view.only(2), leaking.records)
        return
    rounds = [attack.score(leaking.view.only(t), leaking.records) for t in (1, 2, 3)]
    np.testing.assert_allclose(
        attack.score(leaking.view, leaking.records), np.mean(rounds, axis=0), rtol=1e-9
    )


# ---------------------------------------------------------------------- the personalised model


@every_attack
def test_an_insider_is_judged_by_the_model_it_has_and_not_by_what_was_sent(attack, leaking):
    sent = {r.client: r.payload for r in leaking.releases if r.round == heads.ROUNDS - 1}
    view = leaking.held_by_insider({m: p for m, p in sent.items() if isinstance(p, Update)})
    if attack.name == "loss_trajectory":
        with pytest.raises(NotApplicableError, match="no trajectory"):
            attack.score(view, leaking.records)
        return
    only_last = attack.score(leaking.view.only(heads.ROUNDS - 1), leaking.records)
    np.testing.assert_allclose(attack.score(view, leaking.records), only_last, rtol=1e-12)


def test_a_client_whose_model_is_not_kept_is_named(leaking):
    payload = leaking.releases[0].payload
    assert isinstance(payload, Update)
    with pytest.raises(NotApplicableError, match="no trained parameters of client 1"):
        build("loss").score(leaking.held_by_insider({0: payload}), leaking.records)


# ---------------------------------------------------------------------- what can be missing or wrong

PROTOTYPES = Prototypes(vectors=np.ones((CLASSES, DIM), dtype=np.float32), labels=np.arange(CLASSES))


def weights(**named: np.ndarray) -> Update:
    return Update(named={name.replace("_", "."): array for name, array in named.items()}, means="weights")


ONES = np.ones((DIM, CLASSES), dtype=np.float32)
BAD = {
    "prototypes": (PROTOTYPES, "clients sent prototypes, not trained weights"),
    "gradients": (
        Update(named={"head.weight": ONES}, means="gradient"),
        "clients sent gradients, not trained",
    ),
    "changes": (
        Update(named={"head.weight": ONES}, means="delta"),
        "clients sent changes of their weights, not",
    ),
    "other names": (weights(fc_weight=ONES), r"parameter fc\.weight is of no head .* name them head\.weight"),
    "no head": (weights(adapter_down=ONES), "parameter adapter.down is of no head"),
    "adapters inside": (
        Update(named={"head.weight": ONES, "adapter.0.down": ONES}, means="weights"),
        "parameter adapter.0.down is of no head",
    ),
}


@every_attack
@pytest.mark.parametrize("payload", BAD)
def test_what_is_no_head_is_said_in_a_sentence(attack, leaking, payload):
    sent, reason = BAD[payload]
    released = tuple(r for r in leaking.releases if r.client == 0)
    one = replace(leaking, releases=released).sending(sent)
    with pytest.raises(NotApplicableError, match=reason):
        attack.score(one.view, leaking.records.of(0))


@every_attack
def test_before_any_training_there_is_nothing_to_find(attack, leaking):
    with pytest.raises(
        NotApplicableError, match="all clients sent the same weights: no record has gone into them"
    ):
        attack.score(leaking.view.only(0), leaking.records)


@every_attack
def test_a_run_without_any_release_is_not_applicable(attack, leaking):
    with pytest.raises(NotApplicableError, match="client 0 sent no weights"):
        attack.score(ServerView(releases=(), reference=leaking.reference), leaking.records)


@every_attack
def test_features_of_another_width_and_unknown_classes_are_refused(attack, leaking):
    narrow = replace(leaking.records, vectors=leaking.records.vectors[:, 1:])
    with pytest.raises(NotApplicableError, match=f"reads {DIM} numbers, and records have {DIM - 1}"):
        attack.score(leaking.view, narrow)
    other = replace(leaking.records, labels=leaking.records.labels + CLASSES)
    if attack.name != "entropy":  # it looks at no label
        with pytest.raises(NotApplicableError, match=f"class {CLASSES} is|class [4-7] is asked about"):
            attack.score(leaking.view, other)


@every_attack
def test_reference_records_are_asked_for_by_the_attack_that_needs_them(attack, leaking):
    view = replace(leaking.view, reference=None)
    if attack.name in WITH_SHADOWS:
        with pytest.raises(NotApplicableError, match="owns no reference records; set split"):
            attack.score(view, leaking.records)
    else:
        assert np.array_equal(
            attack.score(view, leaking.records), attack.score(leaking.view, leaking.records)
        )


@pytest.mark.parametrize("name", WITH_SHADOWS)
def test_too_few_shadows_or_records_name_the_least(name, leaking):
    with pytest.raises(NotApplicableError, match=r"1 shadow model leaves some records .* use at least 2"):
        build(name, shadows=1).score(leaking.view, leaking.records)
    least = 3 if name == "lira_offline" else 2
    assert build(name, shadows=least).score(leaking.view, leaking.records).shape == (len(leaking.records),)
    few = leaking.reference.where(np.arange(CLIENTS * heads.REFERENCE) % heads.REFERENCE < 7)
    with pytest.raises(
        NotApplicableError, match=r"owns 7 reference records .* shadow models need 8; set split"
    ):
        build(name).score(replace(leaking.view, reference=few), leaking.records)


def test_a_spread_over_one_model_without_a_record_is_not_made_up(leaking):
    with pytest.raises(NotApplicableError, match="a spread needs 2; use at least 3 shadow models"):
        build("lira_offline", shadows=2).score(leaking.view, leaking.records)


@pytest.mark.parametrize("name", WITH_SHADOWS)
def test_reference_records_of_a_class_the_model_has_not_are_refused(name, leaking):
    odd = replace(leaking.reference, labels=leaking.reference.labels + 1)
    with pytest.raises(
        NotApplicableError, match=f"owns records of class {CLASSES}, and the model has {CLASSES}"
    ):
        build(name).score(replace(leaking.view, reference=odd), leaking.records)


@every_attack
def test_a_head_without_bias_is_a_head(attack, leaking):
    heads_sent = tuple(replace(r, payload=heads.as_head(r.payload)) for r in leaking.releases)
    scores = attack.score(replace(leaking, releases=heads_sent).view, leaking.records)
    assert area(scores, leaking.members) > 0.6


@every_attack
def test_a_model_whose_outputs_are_not_finite_is_refused(attack, leaking):
    huge = np.full((DIM, CLASSES), 1e300)
    released = tuple(r for r in leaking.releases if r.client == 0)
    view = replace(leaking, releases=released).sending(weights(head_weight=huge)).view
    asked = replace(leaking.records.of(0), vectors=1e10 * leaking.records.of(0).vectors)
    with pytest.raises(NotApplicableError, match="logits that are not finite"), np.errstate(all="ignore"):
        attack.score(view, asked)
