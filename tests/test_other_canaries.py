"""Canaries of other kinds: as good as the proof allows where the claim is true, and far above it where it is not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from accountant.contract import DependsOn, Relation
from accountant.gaussian import mu_from_epsilon
from attacks._base import AbstractAttack, NotApplicableError
from privkit import plug
from privkit.canaries._base import AbstractCanaries
from privkit.config import RunConfig
from privkit.defenses._base import AbstractReleaseDefense, Known
from privkit.defenses.faults.any_label import AnyLabel
from privkit.defenses.faults.count_leak import CountLeak
from privkit.defenses.faults.reused_noise import ReusedNoise
from privkit.defenses.faulty_igpp import FaultyIgpp
from privkit.defenses.igpp import Igpp
from privkit.defenses.sumcount import SumCount
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import Purpose, SeededNoise, keyed
from privkit.release import Head, Release
from privkit.transcript import Records, ServerView, Transcript

KINDS = plug.names("privkit.canaries")
CLIENTS, COUNT, DIM, RADIUS, REAL = 4, 300, 32, 1.0, 3
EACH = CLIENTS * COUNT // 2


def kind(name: str, **settings: object) -> AbstractCanaries:
    found = plug.build("privkit.canaries", {"name": name, "count": COUNT, "norm": 3 * RADIUS, **settings})
    assert isinstance(found, AbstractCanaries)
    return found


def attack(name: str) -> AbstractAttack:
    found = plug.build("attacks.canary", name)
    assert isinstance(found, AbstractAttack)
    return found


def asked(name: str, seed: int = 3) -> tuple[Records, np.ndarray]:
    one = kind(name)
    canaries = one.design(clients=CLIENTS, dim=DIM, first_label=REAL, seed=seed)
    return canaries, one.answers(canaries, seed=seed)


def sent(name: str, defense: AbstractReleaseDefense, *, rounds: int = 1, seed: int = 3) -> ServerView:
    """What a server sees of a run with canaries of one kind beside a few real records."""
    canaries, yes = asked(name, seed)
    mechanism, rng, releases = defense.mechanism(rounds=rounds), np.random.default_rng(seed), []
    for m in range(CLIENTS):
        labels = np.repeat(np.arange(REAL), 5)
        own = Embeddings(
            vectors=rng.standard_normal((len(labels), DIM)), labels=labels, encoder=DependsOn.PUBLIC
        )
        known = Known(
            labels=np.arange(REAL + kind(name).classes_each * COUNT),
            classes=REAL,
        )
        for t in range(rounds):
            mine = kind(name).planted(canaries, yes, round=t).of(m)
            noise = SeededNoise(keyed(seed, Purpose.RELEASE, round=t, client=m))
            made = mechanism.send(own.with_records(mine.vectors, mine.labels), noise, known)
            known = made.known
            releases.append(Release(round=t, client=m, payload=made.payload, event=made.event))
    return Transcript.of(releases).seen_by_server()


def area(name: str, defense: AbstractReleaseDefense, *, rounds: int = 1) -> float:
    canaries, yes = asked(name)
    return float(roc_auc_score(yes, attack(name).score(sent(name, defense, rounds=rounds), canaries)))


def in_theory(epsilon: float, *, times: float = 1.0) -> float:
    return float(norm.cdf(times * mu_from_epsilon(epsilon=epsilon, delta=1e-5) / 2**0.5))


def near(wanted: float) -> object:
    """Three standard errors of an AUC of as many trials, at most (Birnbaum and Klose, 1957: at equal spread)."""
    return pytest.approx(wanted, abs=3 * (wanted * (1 - wanted) / EACH) ** 0.5)


# ---------------------------------------------------------------------- what a correct mechanism gives away


@pytest.mark.parametrize("rounds", [1, 4])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_moved_label_reaches_the_proof_of_sums_and_counts(epsilon, rounds):
    defense = SumCount(epsilon=epsilon, relation=Relation.REPLACE_ANY_LABEL)
    assert area("label_moving", defense, rounds=rounds) == near(in_theory(epsilon))


@pytest.mark.parametrize("rounds", [1, 4])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_presence_reaches_the_proof_of_sums_and_counts(epsilon, rounds):
    defense = SumCount(epsilon=epsilon, relation=Relation.ADD_REMOVE)
    assert area("presence", defense, rounds=rounds) == near(in_theory(epsilon))


@pytest.mark.parametrize("rounds", [2, 5])
def test_fresh_noise_hides_a_canary_of_one_round_in_the_difference_of_rounds(rounds):
    each = 1 / (rounds * (1 + 1 / (rounds - 1))) ** 0.5
    found = area("one_round", Igpp(epsilon=8.0), rounds=rounds)
    assert found == near(in_theory(8.0, times=each))
    assert found < in_theory(8.0)


# ---------------------------------------------------------------------- what a faulty one does


def test_noise_used_again_shows_a_canary_of_one_round_for_certain():
    defense = FaultyIgpp(claims=Igpp(epsilon=2.0), fault=ReusedNoise())
    assert area("one_round", defense, rounds=2) == 1.0


def test_a_label_shows_as_far_as_the_counterexample_says():
    defense = FaultyIgpp(claims=Igpp(epsilon=8.0), fault=AnyLabel())
    times = (1 + (8 / 9) ** 2) ** 0.5
    found = area("label_moving", defense)
    assert found == near(in_theory(8.0, times=times))
    assert found > in_theory(8.0) + 0.03


def test_a_noise_scale_that_follows_the_count_shows_a_label_as_well_as_its_variances_differ():
    """Noise of variance 1/81 and 1/64, or the other way round, on 32 coordinates each; means hardly differ."""
    found = area("label_moving", FaultyIgpp(claims=Igpp(epsilon=1.0), fault=CountLeak()))
    large, small = np.random.default_rng(0).chisquare(DIM, (2, 200_000)) / np.array([[81], [64]])
    score = (
        small - large
    )  # a likelihood ratio but for a factor: positive where the first class is the larger one
    wanted = float((score[:100_000] > -score[100_000:]).mean())
    assert found == pytest.approx(wanted, abs=0.03)
    assert found > in_theory(1.0) + 0.2


def test_half_the_noise_shows():
    half = SumCount(epsilon=8.0, relation=Relation.ADD_REMOVE)
    canaries, yes = asked("presence")
    view = sent("presence", half)
    louder = SumCount(epsilon=2.0, relation=Relation.ADD_REMOVE).mechanism(rounds=1)
    claimed = ServerView(tuple(replace(r, event=louder.event(nobody())) for r in view.releases))
    found = float(roc_auc_score(yes, attack("presence").score(claimed, canaries)))
    assert found > in_theory(2.0) + 0.1


def nobody() -> Embeddings:
    return Embeddings(
        vectors=np.zeros((0, DIM)), labels=np.zeros(0, dtype=np.int64), encoder=DependsOn.PUBLIC
    )


# ---------------------------------------------------------------------- where a claim gives a kind no meaning


@pytest.mark.parametrize(
    ("name", "defense", "rounds", "reason"),
    [
        ("label_moving", Igpp(epsilon=2.0), 1, "a question about 'replace one record, any label'"),
        ("presence", Igpp(epsilon=2.0), 1, "a question about 'add or remove one record'"),
        (
            "label_moving",
            SumCount(epsilon=2.0, relation=Relation.ADD_REMOVE),
            1,
            "and the claim is about 'add or remove one record'",
        ),
        ("one_round", SumCount(epsilon=2.0, relation=Relation.ADD_REMOVE), 2, "are no neighbours under"),
        ("one_round", Igpp(epsilon=2.0), 1, "needs a second round to be compared with"),
    ],
)
def test_a_kind_that_the_claim_gives_no_meaning_is_not_asked(name, defense, rounds, reason):
    with pytest.raises(NotApplicableError, match=reason):
        area(name, defense, rounds=rounds)


MEANT: dict[str, AbstractReleaseDefense] = {
    "one_round": Igpp(epsilon=8.0),
    "label_moving": SumCount(epsilon=8.0, relation=Relation.REPLACE_ANY_LABEL),
    "presence": SumCount(epsilon=8.0, relation=Relation.ADD_REMOVE),
}
every_kind = pytest.mark.parametrize("name", KINDS)


def test_every_kind_has_an_attack_and_a_meaning():
    assert set(KINDS) == set(MEANT)
    assert [attack(name).asks_about for name in KINDS] == KINDS
    assert len({kind(name).slot for name in KINDS}) == len(KINDS)


# ---------------------------------------------------------------------- what every attack keeps to


@every_kind
def test_scores_are_finite_and_follow_a_permutation(name):
    view, (canaries, _) = sent(name, MEANT[name], rounds=2), asked(name)
    scores, order = attack(name).score(view, canaries), np.random.default_rng(0).permutation(len(canaries))
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert len(np.unique(scores)) == len(scores)
    np.testing.assert_allclose(attack(name).score(view, canaries.where(order)), scores[order], rtol=1e-9)
    assert attack(name).score(view, canaries.where(np.zeros(0, dtype=np.int64))).shape == (0,)


@every_kind
def test_canaries_that_were_not_planted_score_by_chance(name):
    view, (strangers, yes) = sent(name, MEANT[name], rounds=2), asked(name, seed=9)
    found = float(roc_auc_score(yes, attack(name).score(view, strangers)))
    assert found == pytest.approx(0.5, abs=4 * (1 / (6 * EACH)) ** 0.5)


@every_kind
def test_other_payloads_and_missing_classes_are_said(name):
    view, (canaries, _) = sent(name, MEANT[name], rounds=2), asked(name)
    heads = tuple(replace(r, payload=Head(weights=np.ones((2, DIM)))) for r in view.releases)
    with pytest.raises(NotApplicableError, match="clients sent classifier heads, not prototypes"):
        attack(name).score(ServerView(heads), canaries)
    elsewhere = replace(canaries, labels=canaries.labels + 10_000)
    with pytest.raises(NotApplicableError, match=r"released no prototype of class|needs a second round"):
        attack(name).score(view, elsewhere)


# ---------------------------------------------------------------------- designs


@every_kind
def test_a_design_is_public_and_its_answers_are_coins(name):
    one, (canaries, yes) = kind(name), asked(name)
    np.testing.assert_allclose(np.linalg.norm(canaries.vectors, axis=1), 3 * RADIUS, rtol=1e-12)
    for m in range(CLIENTS):
        mine = canaries.clients == m
        assert abs(yes[mine].sum() - COUNT / 2) < 4.5 * COUNT**0.5 / 2
        assert np.array_equal(canaries.labels[mine], REAL + one.classes_each * np.arange(COUNT))
    assert not np.array_equal(yes[:COUNT], yes[COUNT : 2 * COUNT])
    heads = [asked(name, seed)[1][:COUNT].sum() for seed in range(200)]
    assert 0.75 < np.var(heads) / (COUNT / 4) < 1.3  # a shuffle's number of heads does not vary
    other, _ = asked(name, seed=4)
    assert np.abs(np.sum(other.vectors * canaries.vectors, axis=1)).max() < 9 * RADIUS**2


@every_kind
@pytest.mark.parametrize("round", [0, 1])
def test_what_is_planted_has_classes_of_its_own_and_none_of_one_record(name, round):
    one, (canaries, yes) = kind(name), asked(name)
    planted = one.planted(canaries, yes, round=round)
    assert planted.labels.min() == REAL
    assert planted.labels.max() == canaries.labels.max() + one.classes_each - 1
    for m in range(CLIENTS):
        _, counts = np.unique(planted.of(m).labels, return_counts=True)
        assert counts.min() >= 2
        assert len(counts) == one.classes_each * COUNT


def test_only_canaries_of_one_round_differ_by_round_and_only_their_vectors():
    for name in KINDS:
        canaries, yes = asked(name)
        first, later = (kind(name).planted(canaries, yes, round=t) for t in (0, 1))
        assert np.array_equal(first.labels, later.labels)
        assert np.array_equal(first.vectors, later.vectors) == (name != "one_round")


# ---------------------------------------------------------------------- configuration

CONFIG = {
    "data": {"name": "digits", "per_class": 40},
    "encoder": "usps_cnn",
    "rounds": 2,
    "method": "fedproto",
    "defense": {"name": "igpp", "epsilon": 2.0},
}


def test_a_run_without_other_kinds_is_described_as_before():
    plain = RunConfig.from_settings(CONFIG, where="here").settings()
    assert "other_canaries" not in plain
    kinds = [{"name": "one_round"}, "presence"]
    more = RunConfig.from_settings({**CONFIG, "other_canaries": kinds}, where="here").settings()
    assert [one["name"] for one in more["other_canaries"]] == ["one_round", "presence"]
    assert RunConfig.from_settings(more, where="here").settings() == more


@pytest.mark.parametrize(
    ("kinds", "complaint"),
    [
        (["one_round", {"name": "one_round", "count": 4}], "one_round stands there twice; keep one"),
        (["one_rund"], r"kind of canaries 'one_rund' is unknown; known are .*one_round"),
        ([{"name": "presence", "count": 1}], "count=1"),
        ([], "other_canaries"),
        ("one_round", "other_canaries"),
    ],
)
def test_bad_kinds_are_refused_in_one_sentence(kinds, complaint):
    with pytest.raises(InputError, match=complaint) as error:
        RunConfig.from_settings({**CONFIG, "other_canaries": kinds}, where="here")
    assert "\n" not in str(error.value)


# ---------------------------------------------------------------------- end to end


@pytest.mark.slow
def test_a_claim_about_adding_a_record_is_settled_by_canaries_that_are_there_or_not(tmp_path):
    from privkit.audit.run import audit
    from privkit.study import Study
    from privkit.train.loop import train

    defense = {"name": "sumcount", "epsilon": 4.0, "relation": Relation.ADD_REMOVE.value}
    base = {**CONFIG, "method": {"name": "fedproto", "predict": "prototype"}, "defense": defense}
    asked_for = {**base, "other_canaries": [{"name": "presence", "count": 248}]}
    cells = {
        name: RunConfig.from_settings(settings, where=name)
        for name, settings in {"with": asked_for, "without": base}.items()
    }
    train(Study(cells=cells, seeds=1), tmp_path / "runs")
    attacks = [attack(name) for name in plug.names("attacks.canary")]
    nothing = audit(tmp_path / "runs" / "without", attacks=[attack("presence")]).cells[0].taken
    assert nothing[0].reason == "the run has no such canaries; add {name: presence} to other_canaries"
    settled, open_ = (audit(tmp_path / "runs" / name, attacks=attacks).cells[0] for name in cells)
    assert settled.verdict.value == "OK"
    assert "of the claimed mu" in settled.reasons[1]
    assert open_.verdict.value == "INCONCLUSIVE"
    assert "add {name: presence} to other_canaries" in open_.reasons[0]
    shown = {found.attack: found for found in settled.taken}
    assert shown["antipodal"].reason
    assert set(shown) == {"antipodal", "presence"}
    tight = shown["presence"].tightness
    assert tight is not None
    assert tight.low is not None
    assert tight.high is not None
    assert tight.low < 1 < tight.high


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_with_the_same_canaries(tmp_path, monkeypatch):
    from privkit.store import Run
    from privkit.study import Study
    from privkit.train.loop import train

    kinds = [{"name": "one_round", "count": 4}, {"name": "label_moving", "count": 4}]
    study = Study(
        cells={"a": RunConfig.from_settings({**CONFIG, "rounds": 3, "other_canaries": kinds}, where="a")},
        seeds=1,
    )
    train(study, tmp_path / "whole")
    commit = Run.commit

    def killed(self: Run, round: int, *given: Any, **named: Any) -> None:
        if round == 1:
            raise KeyboardInterrupt
        commit(self, round, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            train(study, tmp_path / "killed")
    train(study, tmp_path / "killed")
    for path in sorted((tmp_path / "whole").rglob("*")):
        if path.is_file() and path.name != "timing.json":
            assert (
                tmp_path / "killed" / path.relative_to(tmp_path / "whole")
            ).read_bytes() == path.read_bytes()
    found = Run(tmp_path / "whole")
    assert sorted(found.truth().others) == ["label_moving", "one_round"]
    planted = found.records("one_round")
    assert planted is not None
    usual = found.records("canaries")
    assert usual is None
    assert planted.labels.min() == 10
