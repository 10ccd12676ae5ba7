"""Mini-batches of stacked clients: each record once per epoch, whoever else is in the stack."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from privkit.train.cohort import Client, Cohort

CPU = torch.device("cpu")
SIZES = st.lists(st.integers(1, 13), min_size=1, max_size=6)


def client(index: int, size: int, *, run: int = 0, seed: int = 5) -> Client:
    """Return a client whose records say whose they are, and which."""
    x = np.stack([np.full(size, 100.0 * run + index), np.arange(size)], axis=1).astype(np.float32)
    return Client(
        run=run,
        index=index,
        seed=seed,
        x=x,
        y=np.arange(size) % 3,
        x_test=x[:1],
        y_test=np.zeros(1, dtype=np.int64),
    )


def cohort(sizes: list[int]) -> Cohort:
    return Cohort.stack([client(i, n) for i, n in enumerate(sizes)], CPU)


@given(SIZES)
def test_stacking_orders_clients_by_size_and_keeps_their_records(sizes):
    stacked = cohort(sizes)
    assert stacked.n.tolist() == sorted(sizes, reverse=True)
    assert sorted(c.index for c in stacked.clients) == list(range(len(sizes)))
    for g, one in enumerate(stacked.clients):
        assert np.array_equal(stacked.x[g, : stacked.n[g]].numpy(), one.x)
        assert np.array_equal(stacked.y[g, : stacked.n[g]].numpy(), one.y)


@given(SIZES, st.integers(1, 6), st.integers(1, 3), st.integers(0, 40))
def test_every_record_is_used_once_per_epoch(sizes, size, epochs, round):
    stacked = cohort(sizes)
    rows, weights, _ = stacked.batches(round, epochs=epochs, size=size)
    for g, n in enumerate(stacked.n.tolist()):
        steps = -(-n // size)
        for epoch in range(epochs):
            mine = slice(epoch * steps, (epoch + 1) * steps)
            used = rows[mine, g][weights[mine, g] > 0]
            assert sorted(used.tolist()) == list(range(n))
        assert not weights[epochs * steps :, g].any()


@given(SIZES, st.integers(1, 6), st.integers(1, 3))
def test_weights_of_an_active_client_are_equal_and_sum_to_one(sizes, size, epochs):
    _, weights, active = cohort(sizes).batches(0, epochs=epochs, size=size)
    for step, k in enumerate(active.tolist()):
        assert torch.allclose(weights[step, :k].sum(1), torch.ones(k), atol=1e-6)
        for row in weights[step, :k]:
            assert len(row[row > 0].unique()) == 1


@given(SIZES, st.integers(1, 6), st.integers(1, 3))
def test_active_clients_are_a_prefix_that_never_grows(sizes, size, epochs):
    stacked = cohort(sizes)
    rows, weights, active = stacked.batches(0, epochs=epochs, size=size)
    assert len(rows) == len(weights) == len(active)
    assert (np.diff(active) <= 0).all()
    busy = (weights > 0).any(2)
    assert busy.sum(1).tolist() == active.tolist()
    assert all(busy[step, :k].all() for step, k in enumerate(active.tolist()))
    assert active[-1] >= 1


@given(SIZES, st.integers(1, 6), st.integers(0, 40))
def test_batches_of_a_client_do_not_depend_on_its_neighbours(sizes, size, round):
    together = cohort(sizes)
    rows, weights, _ = together.batches(round, epochs=2, size=size)
    for g, one in enumerate(together.clients):
        single = Cohort.stack([one], CPU)
        own_rows, own_weights, own_active = single.batches(round, epochs=2, size=size)
        assert torch.equal(rows[: len(own_active), g], own_rows[:, 0])
        assert torch.equal(weights[: len(own_active), g], own_weights[:, 0])


def order(one: Client, round: int, epochs: int = 1) -> list[int]:
    return Cohort.stack([one], CPU).batches(round, epochs=epochs, size=30)[0].flatten().tolist()


def test_order_is_new_in_every_epoch_round_client_and_seed():
    first, second = np.split(np.array(order(client(0, 30), 0, epochs=2)), 2)
    orders = [first.tolist(), second.tolist(), order(client(0, 30), 1), order(client(1, 30), 0)]
    orders.append(order(client(0, 30, seed=6), 0))
    assert len({tuple(o) for o in orders}) == 5
    assert order(client(0, 30), 1) == orders[2]


def test_runs_of_one_seed_see_the_same_batches():
    assert order(client(2, 30, run=0), 4) == order(client(2, 30, run=3), 4)


@pytest.mark.parametrize("size", [1, 4, 100])
def test_a_client_with_one_record_takes_one_step_per_epoch(size):
    rows, weights, active = cohort([1]).batches(0, epochs=3, size=size)
    assert rows.shape == (3, 1, size)
    assert active.tolist() == [1, 1, 1]
    assert weights.sum(2).flatten().tolist() == [1.0, 1.0, 1.0]


def with_tests(index: int, records: np.ndarray, labels: np.ndarray) -> Client:
    return replace(client(index, 3), x_test=records, y_test=labels)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 20))
def test_every_test_record_comes_once_and_at_most_so_many_at_a_time(sizes, most):
    records = [np.arange(10 * t, dtype=np.float32).reshape(t, 10) + 100 * i for i, t in enumerate(sizes)]
    stacked = Cohort.stack([with_tests(i, r, np.arange(len(r))) for i, r in enumerate(records)], CPU)
    seen: dict[int, list[np.ndarray]] = {g: [] for g in range(len(sizes))}
    for part, x, y in stacked.tests(most=most):
        assert y.numel() <= most
        for g, mine, labels in zip(range(part.start, part.stop), x.numpy(), y.numpy(), strict=True):
            seen[g].append(mine[labels >= 0])
    for g, one in enumerate(stacked.clients):
        assert np.array_equal(np.concatenate(seen[g]), one.x_test)


def test_clients_with_the_same_test_records_share_their_memory():
    shared, labels = np.ones((50, 10), dtype=np.float32), np.zeros(50, dtype=np.int64)
    stacked = Cohort.stack([with_tests(i, shared, labels) for i in range(6)], CPU)
    for most in (1, 50, 100, 1000):
        parts = stacked.tests(most=most)
        assert sum(len(x) for _, x, _ in parts) == 6 * max(1, -(-50 // most))
        assert len({x.untyped_storage().data_ptr() for _, x, _ in parts}) == 1


@given(SIZES, st.integers(1, 20))
def test_every_training_record_comes_once_and_at_most_so_many_at_a_time(sizes, most):
    stacked, seen = cohort(sizes), []
    for _, pieces in stacked.rows(most=most):
        assert all(len(piece) * piece.shape[1] <= most for piece in pieces)
        seen += list(torch.cat(pieces, dim=1).numpy())
    for one, mine in zip(stacked.clients, seen, strict=True):
        assert np.array_equal(mine[: len(one.y)], one.x)
