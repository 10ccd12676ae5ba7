"""Sums of moments with noise: the claimed move is the true one, what is made of them, and faults that an audit sees."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privkit
from accountant.claims import claim
from accountant.contract import Counts, DependsOn, Query, Relation
from accountant.events import Gaussian, Repeated, from_dict, to_dict
from accountant.gaussian import sigma_from_epsilon
from accountant.moments import RELATIONS, moments_sensitivity
from accountant.relations import restated
from privkit.audit.left import left
from privkit.audit.run import audit
from privkit.audit.scored import RunView
from privkit.audit.work import moved_by_canaries
from privkit.defenses._base import NOTHING, Known, Mechanism, Privatized
from privkit.defenses.dpspread import DpSpread, GaussianMoments
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.evidential import largest_epistemic
from privkit.noise import Noise, NoNoise, SeededNoise
from privkit.prototypes.finch import Finch
from privkit.release import Moments, Release
from privkit.store import Run
from privkit.transcript import Transcript
from reports.findings import Verdict

DIM, RADIUS, C = 4, 2.0, 5
CLASSES = np.arange(C, dtype=np.int64)
KNOWN = Known(labels=CLASSES)
ALL = (0.5, 1.0, 0.75, 0.25, 0.5)
FEW = (1.0, 1.0, 0.5, 0.0, 0.0)
U = np.array([largest_epistemic(C), np.log(C)])


def held(vectors: np.ndarray, labels: np.ndarray, said: np.ndarray | None = None) -> Embeddings:
    return Embeddings(
        vectors=np.asarray(vectors, np.float64),
        labels=np.asarray(labels, np.int64),
        encoder=DependsOn.PUBLIC,
        statistics=said,
    )


def some(seed: int = 0, *, records: int = 9) -> Embeddings:
    """Return records of three of the five classes, and how uncertain a model is of them."""
    rng = np.random.default_rng(seed)
    labels = np.array([0, 1, 3])[rng.integers(0, 3, records)]
    return held(3 * rng.standard_normal((records, DIM)), labels, U * rng.random((records, 2)))


def made(weights: tuple[float, ...] = ALL, **named) -> GaussianMoments:
    return DpSpread(epsilon=2.0, clip_norm=RADIUS, weights=weights, **named).mechanism(rounds=4)  # type: ignore[arg-type]


def sent(mechanism: Mechanism, embeddings: Embeddings, noise: Noise) -> tuple[Moments, Privatized]:
    one = mechanism.privatize(embeddings, noise, KNOWN)
    assert isinstance(one.payload, Moments)
    return one.payload, one


def noise(seed: int = 0) -> SeededNoise:
    return SeededNoise(np.random.default_rng(seed))


def in_query(payload: Moments, weights: tuple[float, ...]) -> np.ndarray:
    """Return what was sent in units of the query, in one row."""
    units = {"squares": RADIUS**2, "epistemic": 1.0, "aleatoric": 1.0}
    a: dict[str, float] = dict(zip(units, weights[2:], strict=True))
    rest = [a[name] / units[name] * block.ravel() for name, block in payload.others().items()]
    vectors = payload.vectors.astype(np.float64)
    return np.concatenate([weights[0] * payload.totals, weights[1] / RADIUS * vectors.ravel(), *rest])


# ---------------------------------------------------------------------- the true sensitivity


@settings(max_examples=60)
@given(
    seed=st.integers(0, 9999),
    label=st.sampled_from([None, 0, 1, 2, 4]),
    length=st.floats(0, 50),
    weights=st.sampled_from([ALL, FEW, (1.0, 1.0, 0.0, 0.0, 0.0), (1.0, 0.5, 2.0, 0.0, 1.0)]),
)
def test_no_replaced_record_moves_the_message_by_more_than_is_claimed(seed, label, length, weights):
    before = some(seed)
    assert before.statistics is not None
    vectors, labels, said = before.vectors.copy(), before.labels.copy(), before.statistics.copy()
    rng = np.random.default_rng(seed)
    vectors[4], said[4] = length * rng.standard_normal(DIM), U * rng.integers(0, 2, 2)
    same = label is None
    labels[4] = labels[4] if same else label
    one, other = (
        in_query(sent(made(weights), x, NoNoise())[0], weights) for x in (before, held(vectors, labels, said))
    )
    relation = Relation.REPLACE_SAME_LABEL if same else Relation.REPLACE_ANY_LABEL
    # what is sent is rounded to float32
    assert np.linalg.norm(one - other) <= moments_sensitivity(weights, relation) + 1e-4


def test_a_record_that_comes_reaches_the_bound():
    far = np.zeros((1, DIM))
    far[0, 2] = 99.0
    before, more = some(), np.concatenate([some().statistics, U[None]])  # type: ignore[list-item]
    after = replace(before.with_records(far, np.array([2])), statistics=more)
    one, other = (in_query(sent(made(), x, NoNoise())[0], ALL) for x in (before, after))
    assert np.linalg.norm(one - other) == pytest.approx(
        moments_sensitivity(ALL, Relation.ADD_REMOVE), rel=1e-5
    )


@pytest.mark.parametrize("relation", RELATIONS)
def test_noise_is_sigma_times_the_sensitivity_on_every_number_of_every_class(relation):
    mechanism, source = made(relation=relation), noise(3)
    clean = in_query(sent(mechanism, some(), NoNoise())[0], ALL)
    drawn = np.array([in_query(sent(mechanism, some(), source)[0], ALL) - clean for _ in range(3000)])
    sigma = sigma_from_epsilon(epsilon=2.0, delta=1e-5, rounds=4)
    assert drawn.shape[1] == C * (1 + 2 * DIM + 2)  # the two empty classes among them
    np.testing.assert_allclose(drawn.std(0), sigma * moments_sensitivity(ALL, relation), rtol=0.06)
    assert np.abs(np.corrcoef(drawn.T) - np.eye(drawn.shape[1])).max() < 0.09


# ---------------------------------------------------------------------- what is sent


@pytest.mark.parametrize("weights", [ALL, FEW, (1.0, 1.0, 0.0, 0.0, 1.0), (1.0, 1.0, 0.0, 1.0, 0.0)], ids=str)
def test_without_noise_it_is_the_sums_of_the_moments_of_clipped_records(weights):
    own = some(5)
    assert own.statistics is not None
    payload, one = sent(made(weights), own, NoNoise())
    z = own.vectors * np.minimum(1.0, RADIUS / np.linalg.norm(own.vectors, axis=1))[:, None]
    for row, label in enumerate(payload.labels.tolist()):
        mine = own.labels == label
        assert payload.totals[row] == mine.sum()
        np.testing.assert_allclose(payload.vectors[row], z[mine].sum(0), rtol=1e-5, atol=1e-5)
        if payload.squares is not None:
            np.testing.assert_allclose(payload.squares[row], (z[mine] ** 2).sum(0), rtol=1e-5, atol=1e-5)
        for k, part in enumerate((payload.epistemic, payload.aleatoric)):
            if part is not None:
                assert part[row] == pytest.approx((own.statistics[mine, k] / U[k]).sum())
    assert [(part is not None) for part in (payload.squares, payload.epistemic, payload.aleatoric)] == [
        a > 0 for a in weights[2:]
    ]
    width = DIM * (weights[2] > 0) + (weights[3] > 0) + (weights[4] > 0)
    assert (one.hidden.moments is None) == (width == 0)
    if one.hidden.moments is not None:
        assert one.hidden.moments.shape == (C, width)


def test_gaussians_of_little_noise_are_those_of_the_records():
    own = some(7, records=200)
    mechanism = DpSpread(epsilon=1e8, clip_norm=20.0, weights=ALL).mechanism(rounds=1)
    found = sent(mechanism, own, noise())[0].present().gaussians(num_classes=C)
    assert found is not None
    assert found.labels.tolist() == [0, 1, 3]
    assert own.statistics is not None
    for row, label in enumerate(found.labels.tolist()):
        mine = own.labels == label
        ale = own.statistics[mine, 1].mean()
        np.testing.assert_allclose(found.vectors[row], own.vectors[mine].mean(0), atol=0.1)
        np.testing.assert_allclose(found.spread[row], own.vectors[mine].std(0) * (1 + ale), rtol=0.2)


def test_an_uncertainty_beyond_its_range_counts_as_its_end():
    own = some()
    assert own.statistics is not None
    beyond = replace(own, statistics=own.statistics + 9.0)
    payload, _ = sent(made(), beyond, NoNoise())
    assert payload.epistemic is not None
    np.testing.assert_allclose(payload.epistemic, payload.totals)


def test_the_threshold_is_in_units_of_the_counts_noise_and_at_least_one_record():
    mechanism = made(FEW, threshold=3.0)
    std = mechanism.noise_multiplier * moments_sensitivity(FEW, Relation.REPLACE_ANY_LABEL)
    assert mechanism.least == pytest.approx(3 * std / FEW[0])
    assert made(FEW, threshold=0.0).least == 1.0
    assert sent(mechanism, some(), NoNoise())[0].least == mechanism.least


# ---------------------------------------------------------------------- what it claims


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_claim_is_covered_and_spends_the_promise(relation):
    defense = DpSpread(epsilon=1.0, weights=FEW, relation=relation)
    _, event, _ = defense.mechanism(rounds=10).privatize(some(), noise(), KNOWN)
    found = claim(Repeated(event=event, count=10), delta=1e-5)
    assert found.covered
    assert found.relation is relation
    assert found.epsilon == pytest.approx(1.0, rel=1e-9)
    assert isinstance(event, Gaussian)
    assert event.contract.query is Query.MOMENTS
    assert event.contract.counts is Counts.NOT_USED
    assert from_dict(to_dict(event)) == event
    there = restated(event, Relation.ADD_REMOVE)
    assert isinstance(there, Gaussian)
    # the noise is what it was: only the move that it is held against is another
    std = event.noise_multiplier * moments_sensitivity(FEW, relation)
    assert there.noise_multiplier * moments_sensitivity(FEW, Relation.ADD_REMOVE) == pytest.approx(std)


@pytest.mark.parametrize("weights", [(1.0, 1.0, 0.5, 0.1, 0.0), (1.0, 1.0, 0.5, 0.0, 0.1)])
def test_uncertainties_are_of_a_head_that_was_trained_on_the_records(weights):
    event = made(weights).event(some())
    assert event.contract.encoder is DependsOn.PRIVATE_STATE
    assert [b.id for b in claim(event, delta=1e-5).broken] == ["A1"]
    assert made(FEW).event(some()).contract.encoder is DependsOn.PUBLIC


def test_the_event_does_not_depend_on_counts_or_labels():
    mechanism = made(FEW)
    assert (
        mechanism.event(some(1)) == mechanism.event(some(2, records=4)) == mechanism.event(some(1, records=0))
    )


@pytest.mark.parametrize("seed", range(3))
def test_no_records_at_all_are_noise_like_others(seed):
    payload, _ = sent(made(FEW), some(records=0), noise(seed))
    assert payload.vectors.any(1).all()


# ---------------------------------------------------------------------- bad input


def test_what_cannot_be_summed_is_refused_in_one_sentence():
    with pytest.raises(InputError, match=r"defense dpspread puts noise on every class, held or not"):
        made(FEW).privatize(some(), noise())
    with pytest.raises(
        InputError, match="defense dpspread sums whole classes, and the method wants prototypes by"
    ):
        made(FEW).privatize(some(), noise(), KNOWN._replace(summary=Finch()))
    with pytest.raises(
        InputError, match="ask for uncertainties, and the method says none of its records; set both"
    ):
        made(ALL).privatize(replace(some(), statistics=None), noise(), KNOWN)
    one = held(np.ones((2, DIM)), np.zeros(2), np.zeros((2, 2)))
    with pytest.raises(InputError, match="uncertainties need at least 2 classes, and 1 was announced"):
        made(ALL).privatize(one, noise(), Known(labels=np.arange(1)))


@pytest.mark.parametrize(
    "weights", [(1.0, 0.0, 1.0, 0.0, 0.0), (0.0, 1.0, 1.0, 0.0, 0.0), (1.0, 1.0, -1.0, 0.0, 0.0)]
)
def test_weights_without_a_count_or_a_sum_are_refused(weights):
    with pytest.raises(ValueError, match="each finite and at least 0, the first two above 0"):
        DpSpread(epsilon=1.0, weights=weights)


# ---------------------------------------------------------------------- the audit


@dataclass(frozen=True)
class Halved(Mechanism):
    """Half of the noise that the event claims, on a part of the message."""

    claimed: GaussianMoments
    part: str = "all"

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Gaussian:
        return self.claimed.event(embeddings, known)

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        if self.part == "all":
            half = replace(self.claimed, noise_multiplier=self.claimed.noise_multiplier / 2)
            return half.privatize(embeddings, noise, known)._replace(event=self.event(embeddings, known))
        one = self.claimed.privatize(embeddings, noise, known)
        assert isinstance(one.payload, Moments)
        assert one.hidden.moments is not None
        clean = {"totals": one.hidden.counts, "squares": one.hidden.moments}[self.part]
        noisy = getattr(one.payload, self.part)
        return one._replace(payload=replace(one.payload, **{self.part: (noisy + clean) / 2}))


def recorded(folder, mechanism: Mechanism, *, rounds: int = 3) -> Run:
    """Record a run of two clients whose embeddings come from a public encoder, its hidden values kept."""
    recorder = privkit.Recorder(
        folder,
        clients=2,
        rounds=rounds,
        num_classes=C,
        dim=24,
        promise=(8.0, 1e-5),
        canaries=256,
        canary_norm=6.0,
    )
    rng = np.random.default_rng(2)
    for t in range(rounds):
        for m in range(2):
            z, y = rng.standard_normal((40, 24)), rng.integers(0, 4, 40)
            recorder.release(mechanism, round=t, client=m, vectors=z, labels=y, encoder=DependsOn.PUBLIC)
    return recorder.run


HONEST = DpSpread(epsilon=8.0, clip_norm=RADIUS).mechanism(rounds=3)


def test_an_audit_of_moments_finds_nothing_wrong(tmp_path):
    recorded(tmp_path / "run", HONEST)
    (cell,) = audit(tmp_path / "run").cells
    assert cell.promised is not None
    assert cell.promised.claim.broken == ()
    assert cell.verdict is Verdict.OK, cell.reasons
    tried = {found.attack: found for found in cell.taken}
    shown = tried["antipodal"].tightness
    assert shown is not None
    assert shown.low is not None
    assert shown.high is not None
    assert shown.low < moved_by_canaries(HONEST.event(some()).contract) < shown.high


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("all", "noise"),
        ("totals", "the noise of the counts is 0."),
        ("squares", "the noise of the moments is 0."),
    ],
)
def test_half_the_noise_of_any_part_is_a_violation(tmp_path, part, words):
    recorded(tmp_path / "run", Halved(HONEST, part))
    (cell,) = audit(tmp_path / "run").cells
    assert cell.verdict is Verdict.VIOLATION
    assert any(words in reason for reason in cell.reasons)


def test_what_is_left_of_every_part_is_standard_normal(tmp_path):
    mechanism = made(ALL)
    one = mechanism.privatize(some(records=60), noise(4), KNOWN)
    run = recorded(tmp_path / "run", HONEST, rounds=1)
    release = Release(round=0, client=0, payload=one.payload, event=one.event)
    view = replace(RunView.of(run), transcript=Transcript.of([release]))
    truth = replace(run.truth(), hidden={(0, 0): one.hidden})
    (found,) = left(view, truth)
    assert found.moments is not None
    assert found.moments.shape == (C, DIM + 2)
    assert len(found.flat) == C * (2 * DIM + 3)
    assert found.flat.std() == pytest.approx(1.0, abs=0.25)
    for odd in (np.zeros((C, 3)), np.full((C, DIM + 2), np.nan)):
        bent = replace(truth, hidden={(0, 0): one.hidden._replace(moments=odd)})
        with pytest.raises(InputError, match="does not fit what was released"):
            left(view, bent)


def test_canaries_are_trusted_for_what_they_move():
    for relation in RELATIONS:
        contract = (
            DpSpread(epsilon=1.0, weights=FEW, relation=relation).mechanism(rounds=1).event(some()).contract
        )
        assert 0.8 < moved_by_canaries(contract) <= 1.0
    same = DpSpread(epsilon=1.0, weights=FEW, relation=Relation.REPLACE_SAME_LABEL).mechanism(rounds=1)
    assert moved_by_canaries(same.event(some()).contract) == 1.0
