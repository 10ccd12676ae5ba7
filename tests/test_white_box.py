"""Checks with the clean vectors in hand: exact where nothing is wrong, and each fault shows."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import privkit
from accountant.contract import Contract, DependsOn, Relation
from accountant.events import Gaussian, leaves
from attacks.statistics.count_scale import count_scale_p_value, split_by_count
from attacks.statistics.draws import guesses_hit, uniform_p_value
from attacks.statistics.multiple import holm
from attacks.statistics.residuals import least_scale, scale_p_value
from attacks.statistics.selected import Selection, log_chance, selection_p_value
from attacks.statistics.shape import shape_gap, shape_p_value
from attacks.statistics.sharing import common_p_value, common_share, most_alike
from privkit import canary
from privkit.audit.chosen import noisy_scores, random_groups
from privkit.audit.left import left
from privkit.audit.recovered import farthest_known
from privkit.audit.run import audit
from privkit.audit.scored import RunView
from privkit.audit.white_box import Check, Seen, checks
from privkit.canaries.one_round import OneRound
from privkit.clean import hidden
from privkit.clip import clip_to_ball
from privkit.defenses._base import AbstractReleaseDefense, Known
from privkit.defenses.faults.count_leak import CountLeak
from privkit.defenses.faults.reused_noise import ReusedNoise
from privkit.defenses.faults.shared_noise import SharedNoise
from privkit.defenses.faulty_igpp import FaultyIgpp
from privkit.defenses.faulty_vpp import FaultyVpp
from privkit.defenses.igpp import Igpp
from privkit.defenses.sumcount import SumCount
from privkit.defenses.vpp import Vpp
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import Purpose, SeededNoise, keyed
from privkit.partitions.random import Random
from privkit.release import Prototypes, Release, SumsAndCounts
from privkit.transcript import Records, Transcript
from privkit.truth import Hidden, Truth

CLIENTS, ROUNDS, CLASSES, DIM, CANARIES = 2, 3, 3, 24, 8
RUNS = 1000
OFTEN = 0.01


def uniform(p_values: np.ndarray) -> bool:
    """Return whether some p-values may be uniform, by Kolmogorov and Smirnov."""
    return bool(stats.kstest(p_values, "uniform").pvalue > 1e-4)


# ---------------------------------------------------------------------- the statistics


@pytest.mark.parametrize(("size", "dim"), [(2, 40), (5, 7), (3, 1)])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_independent_noise_has_a_uniform_p_value_whatever_its_scale(size, dim, scale):
    rng = np.random.default_rng(1)
    drawn = scale * rng.standard_normal((RUNS, 2, size, dim))
    assert uniform(np.array([common_p_value([a, b[:2]]) for a, b in drawn]))


def test_the_analysis_of_variance_is_scipys():
    x_KD = np.random.default_rng(0).standard_normal((4, 1))
    groups = [np.random.default_rng(i).standard_normal((4, 1)) for i in range(6)]
    between = sum(4 * float(g.mean()) ** 2 for g in groups) / 6
    within = sum(float(((g - g.mean()) ** 2).sum()) for g in groups) / 18
    upper, lower = (getattr(stats.f, side)(between / within, 6, 18) for side in ("sf", "cdf"))
    assert common_p_value(groups) == pytest.approx(2 * min(upper, lower), rel=1e-9)
    assert common_share([x_KD, *groups]) < 1


@given(share=st.floats(0.3, 1.0), seed=st.integers(0, 100))
def test_shared_noise_shows_in_common_and_in_a_pair(share, seed):
    rng = np.random.default_rng(seed)
    common, own = rng.standard_normal(2000), rng.standard_normal((3, 2000))
    x_KD = share**0.5 * common + (1 - share) ** 0.5 * own
    assert common_share([x_KD]) == pytest.approx(share, abs=0.15)
    assert common_p_value([x_KD]) < 1e-9
    assert most_alike(list(x_KD)).p_value < 1e-9
    assert most_alike(list(x_KD)).correlation == pytest.approx(share, abs=0.2)


def test_noise_that_cancels_is_not_independent_either():
    drawn = np.random.default_rng(0).standard_normal(500)
    assert common_p_value([np.array([drawn, -drawn])]) == 0.0
    found = most_alike([drawn, -drawn, np.random.default_rng(1).standard_normal(500)])
    assert (found.first, found.second, found.p_value) == (0, 1, 0.0)
    assert found.correlation == pytest.approx(-1.0)


def test_the_law_of_a_cosine_is_scipys():
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, 9))
    r = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert most_alike([a, b]).p_value == pytest.approx(stats.beta(0.5, 4).sf(r**2), rel=1e-9)


def test_the_smallest_of_all_pairs_is_not_too_often_small():
    rng = np.random.default_rng(3)
    p = np.array([most_alike(list(rng.standard_normal((6, 30)))).p_value for _ in range(RUNS)])
    for level in (0.01, 0.05, 0.2):
        assert (p <= level).mean() <= level + 3 * (level * (1 - level) / RUNS) ** 0.5


@pytest.mark.parametrize(
    ("dim", "size", "sets"), [(12, 4, 2), (12, 9, 5), (64, 13, 20), (5, 5, 3), (7, 1, 4)]
)
def test_the_law_of_hits_is_that_of_sets_drawn_at_random(dim, size, sets):
    rng = np.random.default_rng(4)
    drawn = [[rng.permutation(dim) < size for _ in range(sets)] for _ in range(300)]
    p = np.array([uniform_p_value(one) for one in drawn])
    for level in (0.05, 0.3):
        assert (p <= level).mean() <= level + 4 * (level / 300) ** 0.5
    mean = np.mean([guesses_hit(one)[0] for one in drawn])
    assert mean == pytest.approx(guesses_hit(drawn[0])[1], rel=0.15)
    if sets == 2:
        hits = guesses_hit(drawn[0])[0]
        law = stats.hypergeom(dim, size, size)
        wanted = min(1.0, 2 * min(law.cdf(hits), law.sf(hits - 1)))
        assert uniform_p_value(drawn[0]) == pytest.approx(wanted, rel=1e-9)


def test_groups_that_stay_or_take_turns_are_not_random():
    stays = [np.arange(60) < 12] * 12
    turns = [np.arange(60) % 5 == i % 5 for i in range(40)]
    assert uniform_p_value(stays) < 1e-9
    assert uniform_p_value(turns) < 1e-3
    assert "12.0 by chance" not in random_groups(stays).says
    with pytest.raises(ValueError, match="all of one size"):
        uniform_p_value([np.arange(4) < 2, np.arange(4) < 3])


@pytest.mark.parametrize("scale", [0.02, 0.5, 30.0])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_chances_of_all_sets_add_up_to_one_and_are_those_of_a_simulation(size, scale):
    scores, rng = np.array([0.0, 0.1, 0.05, 0.1, 0.02]), np.random.default_rng(0)
    noisy = scores + scale * rng.laplace(size=(100_000, 5))
    places = np.argsort(-noisy, axis=1)[:, :size]
    drawn = np.zeros((100_000, 5), dtype=bool)
    np.put_along_axis(drawn, places, True, axis=1)
    whole = 0.0
    for which in itertools.combinations(range(5), size):
        chosen = np.isin(np.arange(5), which)
        chance = np.exp(log_chance(Selection(scores, chosen, scale), scale=scale))
        seen = (drawn == chosen).all(1).mean()
        assert chance == pytest.approx(seen, abs=5 * (chance / 1e5) ** 0.5 + 1e-5)
        whole += chance
    assert whole == pytest.approx(1.0, abs=1e-4)


def chosen_with(noise: float, *, seed: int, rounds: int = 4) -> list[Selection]:
    """Sets chosen with some part of the claimed noise."""
    rng, claimed = np.random.default_rng(seed), 0.4
    scores = np.minimum(rng.exponential(0.05, 48), 0.1)
    noisy = scores + noise * claimed * rng.laplace(size=(rounds, 48))
    return [Selection(scores, np.argsort(np.argsort(-x)) < 10, claimed) for x in noisy]


def test_a_selection_with_its_noise_is_hardly_ever_flagged_and_one_without_is():
    p = np.array([selection_p_value(chosen_with(1.0, seed=seed)) for seed in range(100)])
    for level in (0.01, 0.1):
        assert (p <= level).mean() <= level + 3 * (level / 100) ** 0.5
    assert max(selection_p_value(chosen_with(0.01, seed=seed)) for seed in range(5)) < 1e-5
    assert "noise of scale 0.4" in noisy_scores(chosen_with(0.01, seed=0)).says


def test_noise_of_one_size_has_a_uniform_p_value_whatever_the_counts():
    rng, few = np.random.default_rng(5), np.arange(9) < 4
    drawn = 7.0 * rng.standard_normal((RUNS, 9, 5))
    assert uniform(np.array([count_scale_p_value(x, few) for x in drawn]))
    assert split_by_count(np.array([3, 3, 3])) is None


@pytest.mark.parametrize("dim", [4, 5, 30])
def test_the_place_of_a_coordinate_is_uniform_whatever_the_scale_of_its_vector(dim):
    rng = np.random.default_rng(6)
    drawn = rng.standard_normal((40_000, dim)) * rng.uniform(0.01, 100, (40_000, 1))
    gap, count = shape_gap(drawn)
    assert count == drawn.size
    assert gap < 1.5 / count**0.5
    u_N = drawn[:, 0] / np.linalg.norm(drawn, axis=1)
    assert uniform(stats.beta((dim - 1) / 2, (dim - 1) / 2, loc=-1, scale=2).cdf(u_N))


@pytest.mark.parametrize("size", [(5, 4), (20, 30), (500, 30)])
def test_gaussian_noise_has_its_shape_and_so_it_has_rounded_to_a_tenth_of_its_deviation(size):
    rng = np.random.default_rng(7)
    p = np.array([shape_p_value(np.round(rng.standard_normal(size) * 10) / 10) for _ in range(200)])
    for level in (0.01, 0.05, 0.2):
        assert (p <= level).mean() <= level + 3 * (level * (1 - level) / 200) ** 0.5


@pytest.mark.parametrize("law", ["uniform", "laplace", "rademacher"])
def test_other_noise_of_the_same_variance_has_another_shape(law):
    assert shape_p_value(other_noise(law, np.random.default_rng(8), (200, 40))) < 1e-6


def other_noise(law: str, rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Return noise of variance 1 that is not Gaussian."""
    match law:
        case "uniform":
            return rng.uniform(-(3**0.5), 3**0.5, size)
        case "laplace":
            return rng.laplace(scale=0.5**0.5, size=size)
        case _:
            return rng.choice([-1.0, 1.0], size)


def test_nothing_has_no_shape_and_the_least_of_one_part_is_that_part():
    assert shape_gap([np.zeros(9), np.ones(3)]) == (0.0, 0)
    assert shape_p_value([]) == 1.0
    part = np.random.default_rng(9).standard_normal(7)
    assert least_scale([part]) == (0, pytest.approx(scale_p_value(part)))


# ---------------------------------------------------------------------- whole runs


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunView:
    """A recorded run, for its questions: records of classes of different sizes, and canaries."""
    recorder = privkit.Recorder(
        tmp_path_factory.mktemp("recorded") / "run",
        clients=CLIENTS,
        rounds=ROUNDS,
        num_classes=CLASSES,
        dim=DIM,
        canaries=CANARIES,
        canary_norm=3.0,
    )
    asked = held()
    recorder.ask(asked.vectors, asked.labels, asked.clients, np.ones(len(asked), dtype=bool))
    return RunView.of(recorder.run)


def held() -> Records:
    rng, sizes = np.random.default_rng(6), (5, 20, 40)
    labels = np.repeat(np.tile(np.arange(CLASSES), CLIENTS), np.tile(sizes, CLIENTS))
    return Records(
        vectors=rng.standard_normal((len(labels), DIM)) / 4,
        labels=labels,
        clients=np.repeat(np.arange(CLIENTS), sum(sizes)),
    )


def seen(run: RunView, defense: AbstractReleaseDefense, seed: int = 0) -> Seen:
    """One run of a defense over the same records, its noise from a seed."""
    canaries, truth = run.questions["canaries"], run.run.truth()
    assert canaries is not None
    planted, mechanism, releases, hidden = (
        canary.planted(canaries, truth.canary_signs),
        defense.mechanism(rounds=ROUNDS),
        [],
        {},
    )
    for m in range(CLIENTS):
        mine, extra = held().of(m), planted.of(m)
        own = Embeddings(vectors=mine.vectors, labels=mine.labels, encoder=DependsOn.PUBLIC)
        own = own.with_records(extra.vectors, extra.labels)
        known = Known(labels=np.unique(own.labels), classes=CLASSES)
        for t in range(ROUNDS):
            noise = SeededNoise(keyed(seed, Purpose.RELEASE, round=t, client=m))
            sent = mechanism.send(own, noise, known)
            known = sent.known
            releases.append(Release(round=t, client=m, payload=sent.payload, event=sent.event))
            assert sent.hidden is not None
            hidden[t, m] = sent.hidden
    view = replace(run, transcript=Transcript.of(releases))
    answers = Truth(members=truth.members, canary_signs=truth.canary_signs, hidden=hidden)
    return Seen(view, answers, left(view, answers))


CORRECT: dict[str, AbstractReleaseDefense] = {
    "igpp": Igpp(epsilon=2.0),
    "sumcount": SumCount(epsilon=2.0, relation=Relation.REPLACE_ANY_LABEL),
    "vpp, random groups": Vpp(epsilon=2.0, partition=Random()),
    "vpp, ellipsoid": Vpp(epsilon=2.0, clip="ellipsoid"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CORRECT)
def test_correct_runs_are_hardly_ever_flagged_and_every_check_has_its_level(run, name):
    runs = RUNS // len(CORRECT)
    found = [found_by_all(seen(run, CORRECT[name], seed)) for seed in range(runs)]
    flagged = sum(bool(holm({k: c.p_value for k, c in one.items()}).rejected) for one in found)
    assert flagged <= OFTEN * runs
    for check in found[0]:
        p = np.array([one[check].p_value for one in found])
        for level in (0.02, 0.2):
            assert (p <= level).mean() <= level + 4 * (level * (1 - level) / runs) ** 0.5, check
        if check.startswith("noise"):
            assert uniform(p), check


def found_by_all(one: Seen) -> dict[str, Check]:
    sets = [x.hidden.groups == 0 for x in one.left if len(x.groups.norms) > 1]
    random = {"choice of groups": random_groups(sets)} if sets else {}
    return checks([one]) | random


def test_noise_that_follows_the_count_is_a_question_only_where_counts_are_claimed_to_be_a_secret(run):
    assert "noise by count" not in checks([seen(run, CORRECT["igpp"])])
    assert "noise by count" in checks([seen(run, CORRECT["sumcount"])])


@pytest.mark.parametrize(
    ("defense", "names"),
    [
        (FaultyIgpp(claims=Igpp(epsilon=2.0)), {"noise", "noise of client 0", "noise of round 2"}),
        (
            FaultyIgpp(claims=Igpp(epsilon=2.0), fault=ReusedNoise(share=0.5)),
            {"noise shared by rounds", "most alike messages"},
        ),
        (
            FaultyIgpp(claims=Igpp(epsilon=2.0), fault=SharedNoise(share=0.5)),
            {"noise shared by clients", "most alike messages"},
        ),
        (FaultyIgpp(claims=Igpp(epsilon=2.0), fault=CountLeak()), {"noise by count"}),
        (FaultyVpp(claims=Vpp(epsilon=2.0, rho=0.4)), {"clip"}),
    ],
)
def test_each_fault_is_named_and_its_sentence_has_a_number(run, defense, names):
    found = checks([seen(run, defense)])
    rejected = set(holm({name: c.p_value for name, c in found.items()}).rejected)
    assert names <= rejected
    assert all(any(sign.isdigit() for sign in found[name].says) for name in rejected)


def _bare(label: int, noise: np.ndarray, release: Release, labels: np.ndarray) -> np.ndarray:
    """Return noise of which one vector of one message has none."""
    alone = (release.round, release.client) == (1, 1)
    return np.where(alone & (labels == label)[:, None], 0.0, noise)


WRONG = {
    "noise of real classes": lambda noise, release, labels: (
        np.where(labels[:, None] < CLASSES, 0.4, 1.0) * noise
    ),
    "least noisy vector": lambda noise, release, labels: _bare(2, noise, release, labels),
    "least noisy coordinate": lambda noise, release, labels: noise * np.where(np.arange(DIM) == 7, 0.1, 1.0),
    "noise shared by coordinates": lambda noise, release, labels: np.concatenate(
        [noise[:, : DIM // 2], -noise[:, : DIM // 2]], axis=1
    ),
    "shape of the noise": lambda noise, release, labels: (
        np.sign(noise) * np.sqrt((noise**2).mean(1, keepdims=True))
    ),
}


def changed(one: Seen, law: Callable[[np.ndarray, Release, np.ndarray], np.ndarray]) -> Seen:
    """The same run with other noise, made of what it had."""

    def spoilt(release: Release) -> Release:
        sent, clean = release.payload, one.truth.hidden[release.round, release.client].means
        assert isinstance(sent, Prototypes)
        return replace(
            release, payload=replace(sent, vectors=clean + law(sent.vectors - clean, release, sent.labels))
        )

    view = replace(one.view, transcript=Transcript.of(map(spoilt, one.view.transcript.releases)))
    return replace(one, view=view, left=left(view, one.truth))


@pytest.mark.parametrize("name", WRONG)
def test_noise_that_only_looks_right_on_the_whole_is_named(run, name):
    """Every one of these left the noise of all messages together nearly as large as it was claimed."""
    one = seen(run, Igpp(epsilon=2.0))
    before, after = checks([one]), checks([changed(one, WRONG[name])])
    assert before[name].p_value > 1e-3
    assert name in holm({check: found.p_value for check, found in after.items()}).rejected
    assert any(sign.isdigit() for sign in after[name].says)


@pytest.mark.parametrize("more", ["coordinates", "vectors"])
def test_more_noise_than_claimed_on_some_vectors_or_coordinates_is_no_fault(run, more):
    def law(noise: np.ndarray, release: Release, labels: np.ndarray) -> np.ndarray:
        half = np.arange(DIM) < DIM // 2 if more == "coordinates" else (labels % 2 == 0)[:, None]
        return noise * np.where(half, 50.0, 1.0)

    one = changed(seen(run, Igpp(epsilon=2.0)), law)
    rows = [row for x in one.left for row in x.rows]
    columns = list(np.concatenate([x.rows for x in one.left]).T)
    mixed = rows if more == "coordinates" else columns
    assert shape_p_value(mixed) < 1e-6
    assert not holm({name: found.p_value for name, found in checks([one]).items()}).rejected


def test_the_clip_check_is_as_far_out_as_the_canaries_were_planted(run):
    loose = Igpp(epsilon=2.0, clip_norm=2.0).mechanism(rounds=ROUNDS)
    tight = Igpp(epsilon=2.0).mechanism(rounds=ROUNDS)
    one = seen(run, Igpp(epsilon=2.0, clip_norm=2.0))
    events = [replace(r, event=tight.event(embeddings())) for r in one.view.transcript.releases]
    view = replace(one.view, transcript=Transcript.of(events))
    found = checks([Seen(view, one.truth, left(view, one.truth))])["clip"]
    assert found.p_value == 0.0
    assert "2.000 times as far out" in found.says
    assert loose.clip_norm == 2.0


def otherwise_clipped(one: Seen, clip: Callable[[np.ndarray], np.ndarray]) -> Seen:
    """The same run, had real records been clipped otherwise; canaries and noise are as they were."""

    def moved(release: Release) -> Release:
        sent, mine = release.payload, held().of(release.client)
        assert isinstance(sent, Prototypes)
        hidden_ = one.truth.hidden[release.round, release.client]
        real = sent.labels < CLASSES
        means = hidden_.means.copy()
        means[real] = [clip(mine.vectors[mine.labels == label]).mean(0) for label in sent.labels[real]]
        hidden[release.round, release.client] = hidden_._replace(means=means)
        return replace(release, payload=replace(sent, vectors=sent.vectors - hidden_.means + means))

    hidden: dict[tuple[int, int], Hidden] = {}
    view = replace(one.view, transcript=Transcript.of(map(moved, one.view.transcript.releases)))
    truth = Truth(members=one.truth.members, canary_signs=one.truth.canary_signs, hidden=hidden)
    return Seen(view, truth, left(view, truth))


LENGTHS = np.linalg.norm(held().vectors, axis=1)


@pytest.mark.parametrize(
    ("clip", "reach"),
    [
        (lambda z: clip_to_ball(z, norm=1.0), 0.0),
        (lambda z: clip_to_ball(z, norm=0.5), 0.5),
        (lambda z: clip_to_ball(z, norm=1.25), 1.25),
        (lambda z: z, LENGTHS.max()),
        (lambda z: np.clip(z, -0.3, 0.3), 0.0),
    ],
    ids=["as claimed", "tighter", "looser", "none", "of another kind"],
)
def test_a_clip_that_only_real_records_escape_shows_in_the_mean_of_known_ones(run, clip, reach):
    one = otherwise_clipped(seen(run, Igpp(epsilon=2.0)), clip)
    known = [farthest_known(each, held().of(each.release.client)) for each in one.left]
    assert max(known) == pytest.approx(reach, rel=1e-4)
    found = checks([one])["clip"]
    assert found.p_value == float(reach <= 1)
    assert reach <= 1 or f"averaged a record that is {reach:.3f} times as far out" in found.says


def test_a_clip_is_not_judged_by_some_of_a_classes_records_nor_under_a_private_encoder(run):
    one = otherwise_clipped(seen(run, Igpp(epsilon=2.0)), lambda z: z)
    half = np.arange(len(held())) % 2 == 0
    some = Truth(members=half, canary_signs=one.truth.canary_signs, hidden=one.truth.hidden)
    assert checks([Seen(one.view, some, left(one.view, some))])["clip"].p_value == 1.0
    (leaf,) = {leaf for r in one.view.transcript.releases for leaf, _ in leaves(r.event)}
    private = replace(leaf, contract=replace(leaf.contract, encoder=DependsOn.PRIVATE_STATE))
    view = replace(
        one.view, transcript=Transcript.of(replace(r, event=private) for r in one.view.transcript.releases)
    )
    assert checks([Seen(view, one.truth, left(view, one.truth))])["clip"].p_value == 1.0


def test_a_group_that_is_not_clipped_is_named_by_known_records(run):
    one = seen(run, Vpp(epsilon=2.0, partition=Random()))
    assert checks([one])["clip"].p_value == 1.0
    free = otherwise_clipped(one, lambda z: z)
    assert checks([free])["clip"].p_value == 0.0


def embeddings() -> Embeddings:
    mine = held().of(0)
    return Embeddings(vectors=mine.vectors, labels=mine.labels, encoder=DependsOn.PUBLIC)


@pytest.mark.parametrize(
    ("label", "more", "said"), [(CLASSES, 1, "5 of a class of 4"), (1, 3, "23 of a class of 20")]
)
def test_a_count_that_is_too_large_is_named_whatever_the_class_holds(run, label, more, said):
    """Class 3 is the first of canaries; class 1 is real, and its records are known to be all of them by their mean."""

    def swollen(release: Release) -> Release:
        sent = release.payload
        assert isinstance(sent, Prototypes)
        assert sent.counts is not None
        return replace(release, payload=replace(sent, counts=sent.counts + more * (sent.labels == label)))

    one = seen(run, Igpp(epsilon=2.0))
    assert checks([one])["counts"].p_value == 1.0
    view = replace(one.view, transcript=Transcript.of(map(swollen, one.view.transcript.releases)))
    found = checks([replace(one, view=view, left=left(view, one.truth))])["counts"]
    assert found.p_value == 0.0
    assert f"sent the count {said} records" in found.says


@pytest.mark.parametrize(("more", "said"), [(0, ""), (1, "sent the count 3 of a class of 2 records")])
def test_a_class_of_another_kind_of_canaries_has_the_count_that_was_planted(run, more, said):
    kind = OneRound(count=2, norm=3.0)
    designed = kind.design(clients=1, dim=DIM, first_label=90, seed=0)
    yes = kind.answers(designed, seed=0)
    planted = kind.planted(designed, yes, round=0)
    own = Embeddings(vectors=planted.vectors, labels=planted.labels, encoder=DependsOn.PUBLIC)
    sent = Igpp(epsilon=2.0).mechanism(rounds=1).privatize(own, SeededNoise(keyed(0, Purpose.RELEASE)))
    payload = sent.payload
    assert isinstance(payload, Prototypes)
    assert payload.counts is not None
    swollen = replace(payload, counts=payload.counts + more * (payload.labels == 91))
    view = replace(
        run,
        transcript=Transcript.of([Release(round=0, client=0, payload=swollen, event=sent.event)]),
        questions={**run.questions, "one_round": designed},
    )
    known = run.run.truth()
    truth = Truth(
        members=known.members,
        canary_signs=known.canary_signs,
        hidden={(0, 0): sent.hidden},
        others={"one_round": yes},
    )
    found = checks([Seen(view, truth, left(view, truth))])["counts"]
    assert (found.p_value, said in found.says) == (float(not more), True)


def test_a_class_of_which_only_some_records_are_known_is_not_accused(run):
    one = seen(run, Igpp(epsilon=2.0))
    asked = held()
    some = Truth(
        members=(asked.labels != 1) | (np.arange(len(asked)) % 2 == 0),
        canary_signs=one.truth.canary_signs,
        hidden=one.truth.hidden,
    )
    assert checks([Seen(one.view, some, left(one.view, some))])["counts"].p_value == 1.0


def test_noise_that_two_runs_share_is_named(run):
    twice = [seen(run, Igpp(epsilon=2.0), seed) for seed in (4, 4)]
    apart = [seen(run, Igpp(epsilon=2.0), seed) for seed in (4, 5)]
    shared, fresh = (checks(runs)["noise shared by runs"] for runs in (twice, apart))
    assert shared.p_value < 1e-9
    assert "different runs is not independent: correlation 1.000" in shared.says
    assert fresh.p_value > 1e-3
    assert "noise shared by runs" not in checks([twice[0]])


def test_runs_of_one_cell_share_noise_no_more_often_than_by_chance(run):
    p = [
        checks([seen(run, Igpp(epsilon=2.0), 2 * i), seen(run, Igpp(epsilon=2.0), 2 * i + 1)])
        for i in range(60)
    ]
    assert uniform(np.array([found["noise shared by runs"].p_value for found in p]))


# ---------------------------------------------------------------------- runs of other people's code


def recorded(path: Path, *, noise: float = 1.0) -> dict[str, float | None]:
    """Record a run whose code keeps its clean means, with so much of the claimed noise, and audit it."""
    rng = np.random.default_rng(8)
    real = held()
    with privkit.Recorder(
        path, clients=CLIENTS, rounds=ROUNDS, num_classes=CLASSES, dim=DIM, canaries=CANARIES, canary_norm=3.0
    ) as recorder:
        for t in range(ROUNDS):
            for m in range(CLIENTS):
                mine = real.of(m)
                z, y = recorder.plant(m, mine.vectors, mine.labels)
                own = Embeddings(vectors=z, labels=y, encoder=DependsOn.PUBLIC)
                sent = Igpp(epsilon=2.0).mechanism(rounds=ROUNDS).privatize(own, SeededNoise(rng))
                clean, payload = sent.hidden.means, sent.payload
                weak = replace(payload, vectors=clean + noise * (payload.vectors - clean))
                recorder.record(round=t, client=m, payload=weak, event=sent.event, clean=clean)
    found = audit(path)
    return {name.partition("/")[2]: p for name, p in found.adjusted_p.items()}


def test_clean_vectors_of_a_recorded_run_are_checked_as_our_own(tmp_path):
    correct, weak = recorded(tmp_path / "right"), recorded(tmp_path / "weak", noise=0.7)
    white_box = {
        "noise",
        "noise of client 1",
        "noise shared by rounds",
        "most alike messages",
        "clip",
        "counts",
    }
    assert white_box <= set(correct)
    assert min(p for p in correct.values() if p is not None) > 0.001
    assert weak["noise"] is not None
    assert weak["noise"] < 0.001


@pytest.mark.parametrize(
    ("given_", "complaint"),
    [
        ({"clean": np.zeros((2, DIM))}, r"clean has shape \(2, 24\) and the released vectors \(5, 24\)"),
        ({"clean": np.full((5, DIM), np.nan)}, r"clean\[0, 0\] is nan"),
        ({"clean": np.zeros((5, DIM), dtype=int)}, "clean has shape .* and type int64"),
        ({"clean": np.zeros((5, DIM)), "groups": np.ones(DIM, dtype=int)}, "the event has 1 groups of noise"),
        ({"clean": np.zeros((5, DIM)), "counts": np.ones(5)}, "counts were given for prototypes"),
        ({"groups": np.zeros(DIM, dtype=int)}, "without clean"),
    ],
)
def test_clean_vectors_that_cannot_have_led_to_a_message_are_refused(tmp_path, given_, complaint):
    recorder = privkit.Recorder(
        tmp_path / "run",
        clients=1,
        rounds=1,
        num_classes=CLASSES,
        dim=DIM,
        canaries=CANARIES,
        canary_norm=3.0,
    )
    mine = held().of(0)
    z, y = recorder.plant(0, mine.vectors, mine.labels)
    own = Embeddings(vectors=z, labels=y, encoder=DependsOn.PUBLIC)
    sent = Igpp(epsilon=2.0).mechanism(rounds=1).privatize(own, SeededNoise(np.random.default_rng(0)))
    with pytest.raises(InputError, match=complaint):
        recorder.record(round=0, client=0, payload=sent.payload, event=sent.event, **given_)


def test_noisy_counts_need_their_true_ones():
    payload = SumsAndCounts(vectors=np.zeros((2, 3)), labels=np.arange(2), totals=np.array([4.2, 5.1]))
    contract = Contract(clip_norm=1.0, encoder=DependsOn.PUBLIC)
    release = Release(
        round=0, client=0, payload=payload, event=Gaussian(noise_multiplier=1.0, contract=contract)
    )
    kept = hidden(release, np.ones((2, 3)), counts=np.array([4, 5]))
    assert kept.counts is not None
    assert kept.counts.tolist() == [4.0, 5.0]
    with pytest.raises(InputError, match="counts were not given for sums_and_counts"):
        hidden(release, np.ones((2, 3)))
    with pytest.raises(InputError, match=r"counts has shape \(1,\); give one for each of 2 rows"):
        hidden(release, np.ones((2, 3)), counts=np.array([4]))


def test_correct_defenses_cannot_reach_a_fault():
    folder = Path(privkit.__file__).parent
    readers = [
        path.name
        for path in folder.rglob("*.py")
        if "defenses.faults" in path.read_text(encoding="utf-8") and "faults" not in path.parent.name
    ]
    assert sorted(readers) == ["faulty_igpp.py"]
