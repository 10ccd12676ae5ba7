import numpy as np
import pytest

from accountant.contract import Contract, Counts
from accountant.events import Gaussian
from privkit.audit.contradicted import contradicted
from privkit.release import Payload, Prototypes, Release, SumsAndCounts
from privkit.transcript import Transcript


def sent(counts: np.ndarray | None, declared: Counts | None) -> Transcript:
    payload = Prototypes(vectors=np.zeros((2, 3), dtype=np.float32), labels=np.arange(2), counts=counts)
    return wrapped(payload, declared)


def wrapped(payload: Payload, declared: Counts | None) -> Transcript:
    event = Gaussian(noise_multiplier=1.0, contract=Contract(counts=declared))
    return Transcript.of([Release(round=0, client=0, payload=payload, event=event)])


def test_counts_that_are_sent_although_declared_not_used_break_the_claim() -> None:
    (broken,) = contradicted([sent(np.array([3, 4]), Counts.NOT_USED)])
    assert (broken.id, broken.epsilon) == ("A10", float("inf"))


@pytest.mark.parametrize(
    ("counts", "declared"),
    [(None, Counts.NOT_USED), (np.array([3, 4]), Counts.PUBLIC), (np.array([3, 4]), None)],
)
def test_what_is_declared_contradicts_nothing(counts: np.ndarray | None, declared: Counts | None) -> None:
    assert contradicted([sent(counts, declared)]) == ()


@pytest.mark.parametrize(
    ("totals", "declared", "broken"),
    [
        ([3.0, 0.0], Counts.NOT_USED, True),
        ([3.0, 0.25], Counts.NOT_USED, False),
        ([3.0, 0.0], Counts.PUBLIC, False),
        ([], Counts.NOT_USED, False),
    ],
)
def test_totals_without_noise_break_the_claim(totals: list[float], declared: Counts, broken: bool) -> None:
    payload = SumsAndCounts(
        vectors=np.zeros((len(totals), 3), dtype=np.float32),
        labels=np.arange(len(totals)),
        totals=np.array(totals, dtype=np.float64),
    )
    assert [b.id for b in contradicted([wrapped(payload, declared)])] == ["A10"] * broken
