"""A transcript is every release in order, and all that an attack gets."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.events import Composed, Event, Gaussian, leaves
from privkit.errors import InputError
from privkit.release import Head, Payload, Prototypes, Release
from privkit.transcript import Records, ServerView, Transcript

PAYLOADS = [Head(weights=np.ones((1, n))) for n in (1, 2, 3)]
EVENTS = [Gaussian(noise_multiplier=float(n)) for n in (1, 2)]

release_lists = st.lists(
    st.builds(
        Release,
        round=st.integers(0, 3),
        client=st.integers(0, 3),
        payload=st.sampled_from(PAYLOADS),
        event=st.sampled_from(EVENTS),
    ),
    unique_by=lambda r: (r.round, r.client),
    max_size=6,
)


def prototypes_of(*labels: int) -> Prototypes:
    return Prototypes(vectors=np.zeros((len(labels), 2)), labels=np.array(labels, dtype=np.int64))


def release(round: int, client: int, payload: Payload, event: Event) -> Release:
    return Release(round=round, client=client, payload=payload, event=event)


@settings(max_examples=40)
@given(release_lists, st.randoms(use_true_random=False))
def test_order_of_arrival_does_not_matter(releases: list[Release], random) -> None:
    shuffled = list(releases)
    random.shuffle(shuffled)
    one, other = Transcript.of(releases), Transcript.of(iter(shuffled))
    assert all(a is b for a, b in zip(one.releases, other.releases, strict=True))
    keys = [(r.round, r.client) for r in one.releases]
    assert keys == sorted(keys)
    assert one.clients == sorted({m for _, m in keys})


@settings(max_examples=40)
@given(release_lists.filter(bool), st.data())
def test_two_releases_of_one_client_in_one_round_are_refused(
    releases: list[Release], data: st.DataObject
) -> None:
    twice = data.draw(st.sampled_from(releases))
    with pytest.raises(InputError, match=f"client {twice.client} has two releases in round {twice.round}"):
        Transcript.of([*releases, twice])


@settings(max_examples=40)
@given(release_lists)
def test_cost_is_that_of_the_clients_own_releases(releases: list[Release]) -> None:
    transcript = Transcript.of(releases)
    for client in range(4):
        mine = [r for r in transcript.releases if r.client == client]
        cost = transcript.cost(client)
        assert isinstance(cost, Composed)
        assert list(cost.events) == [r.event for r in mine]
        assert len(list(leaves(cost))) == len(mine)


def test_prototypes_are_found_by_client_and_label_in_round_order() -> None:
    event = EVENTS[0]
    releases = [
        release(2, 0, prototypes_of(5, 1, 5), event),
        release(0, 0, prototypes_of(5), event),
        release(1, 0, PAYLOADS[0], event),
        release(0, 1, prototypes_of(5), event),
        release(1, 1, prototypes_of(1), event),
    ]
    view = Transcript.of(releases).seen_by_server()
    found = [(r.round, row) for r, row in view.prototypes(client=0, label=5)]
    assert found == [(0, 0), (2, 0), (2, 2)]
    assert view.prototypes(client=1, label=7) == []


def test_a_server_sees_releases_and_its_own_records_and_nothing_else() -> None:
    records = Records(
        vectors=np.zeros((1, 2)), labels=np.zeros(1, dtype=np.int64), clients=np.zeros(1, dtype=np.int64)
    )
    view = Transcript.of([]).seen_by_server(records)
    assert {f.name for f in dataclasses.fields(ServerView)} == {"releases", "reference", "setup"}
    assert view.releases == ()
    assert view.reference is records


def test_records_of_a_client_and_of_a_mask() -> None:
    records = Records(
        vectors=np.arange(8.0).reshape(4, 2), labels=np.array([3, 2, 1, 0]), clients=np.array([0, 1, 0, 1])
    )
    assert records.of(1).labels.tolist() == [2, 0]
    assert records.of(1).vectors.tolist() == [[2, 3], [6, 7]]
    assert records.where(np.array([3, 0])).labels.tolist() == [0, 3]
    assert (len(records), len(records.of(9))) == (4, 0)
