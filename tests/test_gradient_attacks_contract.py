"""What every attack on gradients keeps to: a score per candidate, from uploads and passes and nothing else."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from attacks._base import Family, NotApplicableError, ThreatModel
from attacks.gradient._base import GradientAttack, LayerAttack
from attacks.gradient._trajectory import TrajectoryAttack
from attacks.statistics.auc import auc
from privkit import plug
from privkit.audit.choice import every_attack as all_attacks
from privkit.exposure import BatchRecords, GradientView
from privkit.release import Head, Release, Update
from privkit.transcript import Records, ServerView
from tests import gradient_lab as lab
from tests import gradient_scene as scene
from tests.gradient_lab import Case

PACKAGE = "attacks.gradient"
NAMES = plug.names(PACKAGE)
WITH_PUBLIC = ("head_only", "leverage", "matched_filter")
OF_LOSSES = ("loss_trend", "score_difference", "score_ratio")
READ_NO_UPLOAD = (*OF_LOSSES, "candidate_loss")


def build(name: str, **settings: object) -> GradientAttack | TrajectoryAttack:
    found = plug.build(PACKAGE, {"name": name, **settings})
    assert isinstance(found, GradientAttack | TrajectoryAttack)
    return found


every_attack = pytest.mark.parametrize("attack", [build(name) for name in NAMES], ids=NAMES)
of_uploads = pytest.mark.parametrize(
    "attack", [build(n) for n in NAMES if n not in OF_LOSSES], ids=[n for n in NAMES if n not in OF_LOSSES]
)


@pytest.fixture(scope="module")
def leaking() -> Case:
    return lab.case(scene.bank(500), batch=4, uploads=8, public=200, seed=1)


def area(case: Case, scores: np.ndarray) -> float:
    return float(roc_auc_score(case.members, scores))


@every_attack
def test_it_declares_who_attacks_and_what_is_known(attack):
    assert isinstance(attack.threat, ThreatModel)
    assert attack.threat.tier == ("shadow" if attack.name in WITH_PUBLIC else "public")
    assert all(attack.threat.knows)
    assert attack.reads == "gradients"
    assert attack.asks_about == "records"
    assert attack.citation
    assert plug.build(PACKAGE, attack.settings()) == attack


@every_attack
def test_it_declares_what_tables_of_defenses_compare_it_as(attack):
    assert attack.family in get_args(Family)


def test_one_attack_is_projres_so_that_nobody_chooses_among_several_and_others_are_not_compared():
    of_gradients = [build(name) for name in NAMES]
    assert [a.name for a in of_gradients if a.family == "projection"] == ["projres"]
    assert {a.family for a in of_gradients} == set(get_args(Family))
    assert {getattr(a, "family", None) for a in all_attacks() if a.name not in NAMES} == {None}


def test_an_audit_knows_all_of_them_and_no_name_is_taken_twice():
    known = [attack.name for attack in all_attacks()]
    assert set(NAMES) <= set(known)
    assert len(known) == len(set(known))


@every_attack
def test_there_is_one_finite_float64_per_candidate(attack, leaking):
    scores = attack.score(leaking.view, leaking.records)
    assert scores.shape == (len(leaking.records),)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    if attack.name not in ("joint_decoding",):
        assert len(np.unique(scores)) > len(scores) / 4


@every_attack
def test_no_candidates_give_no_scores(attack, leaking):
    nobody = leaking.taking(np.zeros(0, np.int64))
    assert attack.score(nobody.view, nobody.records).shape == (0,)


@every_attack
def test_a_permutation_of_candidates_permutes_their_scores(attack, leaking):
    order = np.random.default_rng(3).permutation(len(leaking.records))
    permuted = leaking.taking(order)
    scores = attack.score(leaking.view, leaking.records)
    np.testing.assert_allclose(
        attack.score(permuted.view, permuted.records), scores[order], rtol=1e-5, atol=1e-5
    )


@every_attack
def test_a_score_does_not_depend_on_the_other_candidates(attack, leaking):
    if attack.name in ("joint_decoding", "projres_as_coded"):
        return  # one decodes the candidates of an upload together, the other amplifies rounding errors; both say so
    scores = attack.score(leaking.view, leaking.records)
    for row in (0, len(scores) // 2, len(scores) - 1):
        alone = leaking.taking(np.array([row]))
        np.testing.assert_allclose(
            attack.score(alone.view, alone.records), scores[[row]], rtol=1e-5, atol=1e-5
        )


@every_attack
def test_what_is_not_in_the_view_is_not_read(attack, leaking):
    """Neither vectors and labels of candidates, nor anything about members, which the view has no room for."""
    other = replace(leaking.records, vectors=leaking.records.vectors + 1, labels=leaking.records.labels + 1)
    assert np.array_equal(attack.score(leaking.view, other), attack.score(leaking.view, leaking.records))


@every_attack
def test_a_member_scores_higher(attack, leaking):
    """The declared direction."""
    if attack.name == "candidate_loss":
        assert np.array_equal(attack.score(leaking.view, leaking.records), -leaking.view.asked[0].losses)
        return
    scores = attack.score(leaking.view, leaking.records)
    found = auc(scores[leaking.members], scores[~leaking.members])
    assert found.low is not None
    assert found.low > 0.5


@pytest.fixture(scope="module")
def nulls() -> list[Case]:
    return [
        lab.case(scene.bank(330, seed=seed), batch=4, uploads=30, public=100, seed=seed, leaks=False)
        for seed in range(40, 60)
    ]


@every_attack
def test_another_batch_than_the_one_asked_about_is_chance(attack, nulls):
    """The wrong-batch control."""
    areas = [area(one, attack.score(one.view, one.records)) for one in nulls]
    assert 0.42 <= np.mean(areas) <= 0.58
    assert abs(np.mean(areas) - 0.5) <= 4 * np.std(areas, ddof=1) / len(areas) ** 0.5 + 1e-12


# ---------------------------------------------------------------------- rounds


@of_uploads
def test_a_record_asked_about_in_all_rounds_counts_by_its_best(attack):
    first, second = (lab.case(scene.bank(500), batch=4, uploads=3, public=200, seed=seed) for seed in (1, 2))
    passes = first.view.asked[0]
    releases = (*first.view.releases, *(replace(r, round=1) for r in second.view.releases))
    view = replace(
        first.view,
        releases=releases,
        asked={0: passes, 1: passes},
        public=dict.fromkeys((0, 1), first.view.public[0]),
    )
    plain = Records(vectors=first.records.vectors, labels=first.records.labels, clients=first.records.clients)
    by_round = [
        attack.score(replace(view, asked={t: passes}), replace(first.records, rounds=np.full(len(plain), t)))
        for t in (0, 1)
    ]
    np.testing.assert_allclose(attack.score(view, plain), np.max(by_round, axis=0), rtol=1e-9, atol=1e-12)
    mean = build(attack.name, rounds="mean")
    np.testing.assert_allclose(mean.score(view, plain), np.mean(by_round, axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in NAMES if isinstance(build(n), LayerAttack)])
def test_maps_are_fused_as_the_setting_says(name, leaking):
    alone = []
    for one in leaking.view.asked[0].traces:
        view = replace(leaking.view, asked={0: lab.only(leaking.view.asked[0], [one])})
        alone.append(build(name).score(view, leaking.records))
    for rule, wanted in {
        "max": np.max(alone, axis=0),
        "min": np.min(alone, axis=0),
        "mean": np.mean(alone, axis=0),
        "last": alone[-1],
        "top": np.sort(alone, axis=0)[-2:].mean(0),
    }.items():
        found = build(name, layers=rule, top_layers=2).score(leaking.view, leaking.records)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12, err_msg=rule)


# ---------------------------------------------------------------------- uploads in other words


@of_uploads
def test_a_delta_ranks_the_records_of_an_upload_as_its_gradient_does(attack, leaking):
    if attack.name == "gradient_difference":
        with pytest.raises(NotApplicableError, match="whose length is not that of a gradient"):
            attack.score(as_delta(leaking, 1e-3).view, leaking.records)
        return
    scores = attack.score(leaking.view, leaking.records)
    found = attack.score(as_delta(leaking, 1e-3).view, leaking.records)
    twice = attack.score(as_delta(leaking, 2e-3).view, leaking.records)
    if attack.name == "projres_as_coded":  # rounding errors, see there
        assert abs(area(leaking, found) - area(leaking, scores)) < 0.1
        return
    if attack.name != "joint_decoding":  # its weights have the upload's unit
        np.testing.assert_allclose(found, twice, rtol=1e-4, atol=1e-4)
    if attack.name in ("head_only", "matched_filter"):  # the length is guessed
        assert area(leaking, found) > 0.9 * area(leaking, scores)
    else:
        for client in range(8):
            own = leaking.records.clients == client
            assert np.corrcoef(scores[own], found[own])[0, 1] > 0.999


@pytest.mark.parametrize("name", ["head_only", "matched_filter"])
def test_a_gradient_that_a_step_has_shortened_is_filtered_as_one_of_unknown_length(name, leaking):
    attack, short = build(name), shortened(leaking, clip=1e-3)
    known = replace(short, view=replace(short.view, clip=1e-3))
    found = attack.score(known.view, leaking.records)
    expected = attack.score(as_delta(leaking, 1e-3).view, leaking.records)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    longer = replace(leaking, view=replace(leaking.view, clip=1e9))
    np.testing.assert_array_equal(
        attack.score(longer.view, leaking.records), attack.score(leaking.view, leaking.records)
    )


def test_a_shortened_gradient_taken_for_a_whole_one_would_hide_its_records(leaking):
    short, attack = shortened(leaking, clip=1e-3), build("matched_filter")
    known = replace(short, view=replace(short.view, clip=1e-3))
    mistaken = area(leaking, attack.score(short.view, leaking.records))
    assert mistaken + 0.05 < area(leaking, attack.score(known.view, leaking.records))


def shortened(case: Case, *, clip: float) -> Case:
    releases = []
    for r in case.view.releases:
        assert isinstance(r.payload, Update)
        norm = float(np.sqrt(sum(np.square(g, dtype=np.float64).sum() for g in r.payload.named.values())))
        named = {name: (clip / norm * g).astype(np.float32) for name, g in r.payload.named.items()}
        releases.append(replace(r, payload=Update(named=named, means="gradient")))
    return replace(case, view=replace(case.view, releases=tuple(releases)))


def as_delta(case: Case, rate: float) -> Case:
    releases = []
    for r in case.view.releases:
        assert isinstance(r.payload, Update)
        named = {name: (-rate * g).astype(np.float32) for name, g in r.payload.named.items()}
        releases.append(replace(r, payload=Update(named=named, means="delta")))
    return replace(case, view=replace(case.view, releases=tuple(releases)))


@every_attack
def test_parameters_that_were_not_traced_do_not_matter(attack, leaking):
    def more(r: Release) -> Release:
        assert isinstance(r.payload, Update)
        return replace(r, payload=replace(r.payload, named={"bias": np.ones(7), **r.payload.named}))

    view = replace(leaking.view, releases=tuple(map(more, leaking.view.releases)))
    assert np.array_equal(attack.score(view, leaking.records), attack.score(leaking.view, leaking.records))


# ---------------------------------------------------------------------- what can be missing or wrong


@of_uploads
def test_a_map_that_was_not_sent_is_left_out(attack, leaking):
    def less(r: Release, kept: tuple[str, ...]) -> Release:
        assert isinstance(r.payload, Update)
        return replace(r, payload=replace(r.payload, named={name: r.payload.named[name] for name in kept}))

    kept = ("adapter.0.down", "head")
    view = replace(leaking.view, releases=tuple(less(r, kept) for r in leaking.view.releases))
    scores = attack.score(view, leaking.records)
    if attack.name not in READ_NO_UPLOAD:
        traced = replace(
            view,
            asked={0: lab.only(view.asked[0], kept)},
            public={0: lab.only(view.public[0], kept)},
        )
        np.testing.assert_allclose(attack.score(traced, leaking.records), scores, rtol=1e-9)
    nothing = tuple(replace(r, payload=replace(r.payload, named={"bias": np.ones(3)})) for r in view.releases)
    with pytest.raises(
        NotApplicableError, match=r"sent bias, and traced are adapter\.0\.down, .* no map is both"
    ):
        attack.score(replace(view, releases=nothing), leaking.records)


@of_uploads
def test_a_map_of_another_shape_is_named(attack, leaking):
    named = {"head": np.ones((scene.CLASSES, scene.WIDTH + 1))}
    view = replace(
        leaking.view,
        releases=tuple(
            replace(r, payload=Update(named=named, means="gradient")) for r in leaking.view.releases
        ),
    )
    with pytest.raises(
        NotApplicableError, match=r"sent head of shape \[3, 33\], and its trace is of .*\[3, 32\]"
    ):
        attack.score(view, leaking.records)


@of_uploads
def test_weights_and_heads_are_no_gradients(attack, leaking):
    for payload, words in (
        (Update(named={"head": np.ones((3, 32))}, means="weights"), "trained weights"),
        (Head(weights=np.ones((3, 32))), "classifier heads"),
    ):
        view = replace(
            leaking.view, releases=tuple(replace(r, payload=payload) for r in leaking.view.releases)
        )
        with pytest.raises(NotApplicableError, match=f"clients sent {words}, not gradients"):
            attack.score(view, leaking.records)


@every_attack
def test_a_view_without_passes_says_what_is_missing(attack, leaking):
    with pytest.raises(NotApplicableError, match="the view holds no passes of candidates through the model"):
        attack.score(ServerView(leaking.view.releases), leaking.records)
    empty = GradientView(leaking.view.releases, batch_size=4)
    with pytest.raises(NotApplicableError, match=r"asked about in round 0, and the view|view has losses"):
        attack.score(empty, leaking.records)


@of_uploads
def test_a_client_that_sent_nothing_is_named(attack, leaking):
    view = replace(leaking.view, releases=leaking.view.releases[1:])
    with pytest.raises(NotApplicableError, match="client 0 sent nothing in round 0"):
        attack.score(view, leaking.records)


@of_uploads
@pytest.mark.parametrize("what", ["inputs", "slopes"])
def test_a_trace_that_is_not_finite_is_named(attack, leaking, what):
    passes = leaking.view.asked[0]
    bad = getattr(passes.traces["head"], what).copy()
    bad[3] = np.nan
    traces = {**passes.traces, "head": replace(passes.traces["head"], **{what: bad})}
    view = replace(leaking.view, asked={0: replace(passes, traces=traces)})
    with pytest.raises(NotApplicableError, match="a candidate of round 0 in map head is not finite"):
        attack.score(view, leaking.records)


@every_attack
def test_public_records_are_asked_for_by_the_attack_that_needs_them(attack, leaking):
    view = replace(leaking.view, public={})
    if attack.name in WITH_PUBLIC:
        with pytest.raises(NotApplicableError, match="owns no records traced at the weights of round 0"):
            attack.score(view, leaking.records)
    else:
        assert np.array_equal(
            attack.score(view, leaking.records), attack.score(leaking.view, leaking.records)
        )


@of_uploads
def test_an_upload_of_zeros_holds_no_information(attack, leaking):
    """What a factor that starts at zero gives: ties, not an AUC of rounding errors."""
    if attack.name in READ_NO_UPLOAD:
        return

    def zeros(r: Release) -> Release:
        assert isinstance(r.payload, Update)
        return replace(
            r, payload=replace(r.payload, named={n: np.zeros_like(g) for n, g in r.payload.named.items()})
        )

    view = replace(leaking.view, releases=tuple(map(zeros, leaking.view.releases)))
    scores = attack.score(view, leaking.records)
    assert np.isfinite(scores).all()
    if isinstance(attack, LayerAttack) or attack.name in ("gradient_cosine", "joint_decoding", "fedmia"):
        assert (scores == 0).all()
        assert area(leaking, scores) == 0.5


@of_uploads
def test_numbers_of_mixed_types_are_read_as_what_they_are(attack, leaking):
    def mixed(r: Release) -> Release:
        assert isinstance(r.payload, Update)
        kinds = (np.float16, np.float64, np.float32)
        named = {n: g.astype(k) for (n, g), k in zip(r.payload.named.items(), kinds, strict=True)}
        return replace(r, payload=replace(r.payload, named=named))

    view = replace(leaking.view, releases=tuple(map(mixed, leaking.view.releases)))
    scores = attack.score(view, leaking.records)
    assert np.isfinite(scores).all()
    assert area(leaking, scores) >= area(leaking, attack.score(leaking.view, leaking.records)) - 0.05


def test_a_round_that_nobody_traced_and_a_missing_client_are_told_apart(leaking):
    asked = replace(leaking.records, rounds=np.ones(len(leaking.records), np.int64))
    assert isinstance(asked, BatchRecords)
    with pytest.raises(NotApplicableError, match="asked about in round 1, and the view has passes of none"):
        build("projres").score(leaking.view, asked)


def test_losses_that_end_too_early_are_refused(leaking):
    asked = replace(leaking.records, rounds=np.ones(len(leaking.records), np.int64))
    with pytest.raises(
        NotApplicableError, match="round 1 is asked about, and losses are known after 1 rounds"
    ):
        build("score_ratio").score(leaking.view, asked)
    once = replace(leaking.view, losses=leaking.view.losses[:, :1])
    for name in OF_LOSSES:
        with pytest.raises(NotApplicableError, match="losses are known at one point only"):
            build(name).score(once, leaking.records)


def test_two_other_clients_are_the_least_for_a_spread(leaking):
    few = leaking.taking(np.flatnonzero(leaking.records.clients < 2))
    view = replace(few.view, releases=few.view.releases[:2])
    with pytest.raises(
        NotApplicableError, match="1 other clients sent the same maps in round 0; a spread needs 2"
    ):
        build("fedmia").score(view, few.records)
