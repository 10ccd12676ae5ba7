"""Sums and counts: the true sensitivity, the noise on every class, and what faults in them give away."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

import privkit
from accountant.accountants import smallest
from accountant.claims import claim
from accountant.contract import Counts, DependsOn, Query, Relation
from accountant.events import Gaussian, Repeated
from accountant.gaussian import mu_from_sigma, sigma_from_epsilon
from accountant.relations import restated
from attacks._averaged import averaged
from attacks.membership.likelihood_ratio import LikelihoodRatio
from attacks.statistics.residuals import scale_p_value
from privkit.audit.contradicted import contradicted
from privkit.audit.left import left
from privkit.audit.run import audit
from privkit.audit.scored import RunView
from privkit.defenses._base import NOTHING, Known, Mechanism, Privatized
from privkit.defenses.igpp import Igpp
from privkit.defenses.sumcount import GaussianSums, SumCount
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.methods.fedproto import FedProto
from privkit.noise import Noise, NoNoise, SeededNoise
from privkit.release import ByClass, Prototypes, Release, SumsAndCounts
from privkit.store import Run
from privkit.transcript import Records, Transcript
from privkit.truth import Hidden
from reports.findings import Verdict
from tests.test_attacks_contract import scene, standard_error

DIM, RADIUS = 6, 2.0
CLASSES = np.arange(5, dtype=np.int64)
KNOWN = Known(labels=CLASSES)
REPLACED, ADDED = Relation.REPLACE_ANY_LABEL, Relation.ADD_REMOVE


def held(vectors: np.ndarray, labels: np.ndarray) -> Embeddings:
    return Embeddings(
        vectors=np.asarray(vectors, np.float64),
        labels=np.asarray(labels, np.int64),
        encoder=DependsOn.PUBLIC,
    )


def some(seed: int = 0, *, records: int = 9) -> Embeddings:
    """Return records of three of the five classes."""
    rng = np.random.default_rng(seed)
    return held(3 * rng.standard_normal((records, DIM)), np.array([0, 1, 3])[rng.integers(0, 3, records)])


def noise(seed: int = 0) -> SeededNoise:
    return SeededNoise(np.random.default_rng(seed))


def clean(embeddings: Embeddings) -> np.ndarray:
    """Return what noise is added to, in one row: every class's sum and clip norm times count."""
    mechanism = SumCount(epsilon=1.0, clip_norm=RADIUS).mechanism(rounds=1)
    hidden = mechanism.privatize(embeddings, NoNoise(), KNOWN).hidden
    assert hidden.counts is not None
    return np.concatenate([hidden.means.ravel(), RADIUS * hidden.counts])


# ---------------------------------------------------------------------- the true sensitivity


@settings(max_examples=60)
@given(seed=st.integers(0, 9999), label=st.sampled_from([0, 1, 2, 3, 4]), length=st.floats(0, 50))
def test_no_replaced_record_moves_everything_by_more_than_twice_the_clip_norm(seed, label, length):
    before = some(seed)
    vectors, labels = before.vectors.copy(), before.labels.copy()
    vectors[4], labels[4] = length * np.random.default_rng(seed).standard_normal(DIM), label
    assert np.linalg.norm(clean(before) - clean(held(vectors, labels))) <= 2 * RADIUS * (1 + 1e-9)


@settings(max_examples=60)
@given(seed=st.integers(0, 9999), label=st.sampled_from([0, 1, 2, 3, 4]), length=st.floats(0, 50))
def test_no_added_record_moves_everything_by_more_than_root_two_clip_norms(seed, label, length):
    before = some(seed)
    new = length * np.random.default_rng(seed).standard_normal((1, DIM))
    after = before.with_records(new, np.array([label]))
    assert np.linalg.norm(clean(before) - clean(after)) <= 2**0.5 * RADIUS * (1 + 1e-9)


def test_both_bounds_are_attained():
    """By a record and its negative, by a record that changes its class, and by one that comes."""
    far = np.full((1, DIM), 10.0)
    here = some().with_records(far, np.array([1]))
    negated, moved = some().with_records(-far, np.array([1])), some().with_records(far, np.array([2]))
    assert np.linalg.norm(clean(here) - clean(negated)) == pytest.approx(2 * RADIUS)
    assert np.linalg.norm(clean(here) - clean(moved)) == pytest.approx(2 * RADIUS)
    assert np.linalg.norm(clean(here) - clean(some())) == pytest.approx(2**0.5 * RADIUS)


@pytest.mark.parametrize(("relation", "times"), [(REPLACED, 2.0), (ADDED, 2**0.5)])
def test_noise_is_sigma_times_the_sensitivity_on_every_number_of_every_class(relation, times):
    mechanism, source = (
        SumCount(epsilon=2.0, clip_norm=RADIUS, relation=relation).mechanism(rounds=4),
        noise(3),
    )
    sent = [mechanism.privatize(some(), source, KNOWN) for _ in range(4000)]
    sigma = sigma_from_epsilon(epsilon=2.0, delta=1e-5, rounds=4)
    payloads = [s.payload for s in sent if isinstance(s.payload, SumsAndCounts)]
    drawn = np.array(
        [
            np.column_stack([p.vectors - s.hidden.means, RADIUS * (p.totals - s.hidden.counts)])
            for p, s in zip(payloads, sent, strict=True)
        ]
    )
    np.testing.assert_allclose(drawn.std(0), sigma * times * RADIUS, rtol=0.05)
    flat = drawn.reshape(4000, -1)
    assert np.abs(np.corrcoef(flat.T) - np.eye(flat.shape[1])).max() < 0.08
    assert drawn.shape[1] == len(CLASSES)  # the two empty classes among them


# ---------------------------------------------------------------------- what it claims


@pytest.mark.parametrize("relation", [r for r in Relation if not r.about_clients])
def test_the_claim_is_covered_and_spends_the_promise(relation):
    _, event, _ = (
        SumCount(epsilon=1.0, relation=relation).mechanism(rounds=10).privatize(some(), noise(), KNOWN)
    )
    found = claim(Repeated(event=event, count=10), delta=1e-5)
    assert found.covered
    assert found.relation is relation
    assert found.epsilon == pytest.approx(1.0, rel=1e-9)
    assert found.epsilon <= 1.0
    assert isinstance(event, Gaussian)
    assert event.contract.counts is Counts.NOT_USED
    assert event.contract.class_counts == ()


def test_less_noise_under_add_and_remove_is_the_same_event_restated():
    replaced, added = (
        SumCount(epsilon=1.0, clip_norm=RADIUS, relation=r).mechanism(rounds=1) for r in (REPLACED, ADDED)
    )
    other = restated(added.event(some()), REPLACED)
    assert isinstance(other, Gaussian)
    assert other.noise_multiplier == pytest.approx(replaced.noise_multiplier / 2**0.5)
    assert smallest(other, delta=1e-5).epsilon > 1.3


def test_the_event_does_not_depend_on_counts_or_labels():
    mechanism = SumCount(epsilon=1.0).mechanism(rounds=1)
    assert (
        mechanism.event(some(1)) == mechanism.event(some(2, records=4)) == mechanism.event(some(1, records=0))
    )


def test_classes_must_be_announced():
    mechanism = SumCount(epsilon=1.0).mechanism(rounds=1)
    with pytest.raises(InputError, match=r"no list of classes was given; pass Known\(labels=\.\.\.\)"):
        mechanism.privatize(some(), noise())
    with pytest.raises(
        InputError, match="record of class 7, which is none of the classes that were announced"
    ):
        mechanism.privatize(held(np.ones((1, 2)), np.array([7])), noise(), KNOWN)


def test_without_records_there_is_noise_alone():
    mechanism = SumCount(epsilon=1.0).mechanism(rounds=1)
    sent = mechanism.privatize(held(np.zeros((0, DIM)), np.zeros(0)), noise(), KNOWN)
    assert sent.payload.vectors.shape == (5, DIM)
    assert sent.payload.vectors.all()


# ---------------------------------------------------------------------- what a server makes of it


def test_prototypes_are_sums_over_totals_of_at_least_one():
    sent = SumsAndCounts(
        vectors=np.array([[6.0, 2.0], [3.0, 3.0], [1.0, 0.0]], np.float32),
        labels=CLASSES[:3],
        totals=np.array([4.0, 0.25, -9.0]),
    )
    np.testing.assert_allclose(sent.prototypes().vectors, [[1.5, 0.5], [3.0, 3.0], [1.0, 0.0]])
    assert sent.prototypes().counts is None
    assert sent.only(sent.labels > 0).totals.tolist() == [0.25, -9.0]


def test_the_server_adds_up_sums_and_totals_over_clients():
    """Records of all clients weigh the same, and noise in a count is averaged before anything is divided by it."""
    rng, method = np.random.default_rng(0), FedProto()
    uploads: dict[int, ByClass] = {
        m: SumsAndCounts(
            vectors=rng.standard_normal((2, 3)), labels=np.array([0, 2]), totals=np.array([5.0 + m, -1.0])
        )
        for m in range(3)
    }
    merged = method.merge(method.start(dim=3, num_classes=4, seed=0), uploads)
    total = np.sum([u.vectors for u in uploads.values()], axis=0)
    np.testing.assert_allclose(merged["prototypes"][0], total[0] / 18.0, rtol=1e-6)
    np.testing.assert_allclose(
        merged["prototypes"][2], total[1] / 3.0, rtol=1e-6
    )  # one record a client at least
    assert merged["holders"].tolist() == [3, 0, 3, 0]


def test_rounds_are_averaged_before_their_total_is_divided_by():
    mechanism, source = SumCount(epsilon=1.0, clip_norm=RADIUS).mechanism(rounds=8), noise(1)
    releases, sums, totals = [], [], []
    for t in range(8):
        payload, event, _ = mechanism.privatize(some(records=60), source, KNOWN)
        assert isinstance(payload, SumsAndCounts)
        releases.append(Release(round=t, client=0, payload=payload, event=event))
        sums.append(payload.vectors[1])
        totals.append(payload.totals[1])
    found = averaged(Transcript.of(releases).seen_by_server(), client=0, label=1)
    assert found.count == pytest.approx(max(1.0, np.mean(totals)))
    np.testing.assert_allclose(found.vector * found.count, np.mean(sums, axis=0), rtol=1e-5)
    sigma = sigma_from_epsilon(epsilon=1.0, delta=1e-5, rounds=8)
    np.testing.assert_allclose(found.variance * found.count**2, (sigma * 2 * RADIUS) ** 2 / 8, rtol=1e-9)


def test_the_likelihood_ratio_finds_members_as_well_as_in_means_of_the_same_noise():
    """The noise on a sum is IGPP's on a mean times its count; a count that is a little off costs the attack little."""
    areas = []
    for defense in (Igpp(epsilon=300.0), SumCount(epsilon=300.0)):
        one = scene(defense)
        areas.append(roc_auc_score(one.members, LikelihoodRatio().score(one.view, one.records)))
    assert min(areas) > 0.5 + 5 * standard_error(scene(Igpp(epsilon=300.0)).members)
    assert areas[1] == pytest.approx(areas[0], abs=0.05)


# ---------------------------------------------------------------------- faults


@dataclass(frozen=True)
class OnlyPresent(Mechanism):
    """Puts noise on the classes that the client holds, and sends zeros for the others."""

    claimed: GaussianSums

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Gaussian:
        return self.claimed.event(embeddings, known)

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        sent = self.claimed.privatize(embeddings, noise, known)
        payload = sent.payload
        assert isinstance(payload, SumsAndCounts)
        present = np.isin(payload.labels, embeddings.labels)
        return sent._replace(
            payload=replace(
                payload,
                vectors=payload.vectors * present[:, None],
                totals=np.where(present, payload.totals, 0.0),
            )
        )


def presence(mechanism: Mechanism, *, draws: int = 400) -> float:
    """Return the AUC of telling a record of a class of its own from the same record in another class.

    The score is the log likelihood ratio, and a row of zeros gives the answer away.
    """
    record = np.full((1, DIM), 10.0)
    worlds = [some().with_records(record, np.array([label])) for label in (4, 1)]
    source, scores = noise(5), []
    means = [clean(world) for world in worlds]
    for world in worlds:
        for _ in range(draws):
            payload = mechanism.privatize(world, source, KNOWN).payload
            assert isinstance(payload, SumsAndCounts)
            flat = np.concatenate([payload.vectors.ravel(), RADIUS * payload.totals])
            ratio = (flat - (means[0] + means[1]) / 2) @ (means[0] - means[1])
            scores.append(ratio if payload.vectors[4].any() else -np.inf)
    finite = np.maximum(scores, -1e9)
    return float(roc_auc_score(np.repeat([True, False], draws), finite))


def test_a_class_of_one_record_is_hidden_exactly_as_well_as_is_claimed():
    mechanism = SumCount(epsilon=4.0, clip_norm=RADIUS).mechanism(rounds=1)
    wanted = stats.norm.cdf(mu_from_sigma(sigma=mechanism.noise_multiplier, rounds=1) / 2**0.5)
    assert presence(mechanism, draws=4000) == pytest.approx(wanted, abs=0.02)


def test_noise_on_present_classes_only_gives_a_class_away():
    assert presence(OnlyPresent(SumCount(epsilon=4.0, clip_norm=RADIUS).mechanism(rounds=1))) == 1.0


def test_exact_counts_contradict_a_contract_that_says_they_are_not_used():
    mechanism = SumCount(epsilon=1.0).mechanism(rounds=1)
    payload, event, _ = mechanism.privatize(some(), noise(), KNOWN)
    honest = Release(round=0, client=0, payload=payload, event=event)
    counts = np.array([3, 2, 1, 4, 1])
    sent = Prototypes(vectors=payload.prototypes().vectors, labels=payload.labels, counts=counts)
    leaky = replace(honest, payload=sent)
    assert contradicted([Transcript.of([honest])]) == ()
    assert [b.id for b in contradicted([Transcript.of([leaky])])] == ["A10"]
    assert isinstance(event, Gaussian)
    public = replace(event, contract=replace(event.contract, counts=Counts.PUBLIC))
    assert [b.id for b in claim(public, delta=1e-5).broken] == ["A3"]
    assert event.contract.query is Query.SUMS_AND_COUNTS


def recorded(folder, mechanism: Mechanism, *, rounds: int = 3) -> Run:
    """Record a run of two clients whose embeddings come from a public encoder, its hidden values kept."""
    recorder = privkit.Recorder(
        folder,
        clients=2,
        rounds=rounds,
        num_classes=5,
        dim=24,
        promise=(8.0, 1e-5),
        canaries=256,
        canary_norm=6.0,
    )
    rng = np.random.default_rng(2)
    real = [(rng.standard_normal((80, 24)), rng.integers(0, 4, 80)) for _ in range(2)]
    vectors, labels = (np.concatenate(part) for part in zip(*real, strict=True))
    recorder.ask(vectors, labels, np.repeat([0, 1], 80), np.arange(160) % 2 == 0)
    for t in range(rounds):
        for m, (z, y) in enumerate(real):
            keep = np.arange(80) % 2 == 0
            recorder.release(
                mechanism, round=t, client=m, vectors=z[keep], labels=y[keep], encoder=DependsOn.PUBLIC
            )
    return recorder.run


def test_an_audit_of_sums_and_counts_lists_no_broken_assumption(tmp_path):
    recorded(tmp_path / "run", SumCount(epsilon=8.0, clip_norm=RADIUS).mechanism(rounds=3))
    cell = audit(tmp_path / "run").cells[0]
    assert cell.promised is not None
    assert cell.promised.claim.broken == ()
    assert cell.promised.claim.relation is REPLACED
    assert cell.verdict is Verdict.OK, cell.reasons
    tried = {found.attack: found for found in cell.taken}
    assert tried["antipodal"].auc is not None
    assert tried["antipodal"].auc_ceiling is not None


def test_half_the_noise_on_sums_is_a_violation(tmp_path):
    honest = SumCount(epsilon=8.0, clip_norm=RADIUS).mechanism(rounds=3)
    recorded(tmp_path / "run", Halved(honest))
    found = audit(tmp_path / "run")
    assert found.cells[0].verdict is Verdict.VIOLATION
    by_canaries = [p for test, p in found.adjusted_p.items() if "/antipodal/" in test and p is not None]
    assert min(by_canaries) < found.significance


@dataclass(frozen=True)
class QuietCounts(OnlyPresent):
    """Half of the noise that the event claims on counts, all of it on sums."""

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        sent = self.claimed.privatize(embeddings, noise, known)
        assert isinstance(sent.payload, SumsAndCounts)
        totals = (sent.payload.totals + sent.hidden.counts) / 2
        return sent._replace(payload=replace(sent.payload, totals=totals))


def test_half_the_noise_on_counts_is_a_violation_of_its_own(tmp_path):
    honest = SumCount(epsilon=8.0, clip_norm=RADIUS).mechanism(rounds=3)
    recorded(tmp_path / "run", QuietCounts(honest))
    (cell,) = audit(tmp_path / "run").cells
    assert cell.verdict is Verdict.VIOLATION
    (reason, *_) = cell.reasons
    assert re.match(r"the noise of the counts is 0\.[45]\d\d of what was claimed", reason)


@dataclass(frozen=True)
class Halved(OnlyPresent):
    """Half of the noise that the event claims, on every class."""

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        half = replace(self.claimed, noise_multiplier=self.claimed.noise_multiplier / 2)
        return half.privatize(embeddings, noise, known)._replace(event=self.event(embeddings, known))


@pytest.mark.parametrize(("fault", "honest"), [(False, True), (True, False)], ids=["honest", "half"])
def test_the_noise_check_looks_at_sums_and_counts(tmp_path, fault, honest):
    mechanism = SumCount(epsilon=8.0, clip_norm=RADIUS).mechanism(rounds=1)
    sent = (Halved(mechanism) if fault else mechanism).privatize(some(records=60), noise(4), KNOWN)
    run = recorded(tmp_path / "run", mechanism, rounds=1)
    release = Release(round=0, client=0, payload=sent.payload, event=sent.event)
    view = replace(RunView.of(run), transcript=Transcript.of([release]))
    truth = replace(run.truth(), hidden={(0, 0): sent.hidden})
    found = left(view, truth)[0].flat
    assert len(found) == len(CLASSES) * (DIM + 1)
    assert found.std() == pytest.approx(1.0 if honest else 0.5, abs=0.2)
    p = scale_p_value(found)
    assert p is not None
    assert (p > 1e-3) == honest
    for odd in (None, np.zeros(3)):
        bent = replace(truth, hidden={(0, 0): sent.hidden._replace(counts=odd)})
        with pytest.raises(InputError, match="does not fit what was released"):
            left(view, bent)


def test_records_of_a_run_can_be_asked_about(tmp_path):
    """The released totals are no counts, so the payload that attacks see has none to rely on."""
    sent = SumCount(epsilon=8.0).mechanism(rounds=1).privatize(some(), noise(), KNOWN)
    assert isinstance(sent.hidden, Hidden)
    view = Transcript.of([Release(round=0, client=0, payload=sent.payload, event=sent.event)]).seen_by_server(
        Records(
            vectors=some(8, records=60).vectors, labels=some(8, records=60).labels, clients=np.zeros(60, int)
        )
    )
    asked = Records(vectors=some().vectors, labels=some().labels, clients=np.zeros(9, int))
    assert np.isfinite(LikelihoodRatio().score(view, asked)).all()
