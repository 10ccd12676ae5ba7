"""What every partition keeps to, whatever files there are: what is free looks at no record, the rest is paid for."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jaxtyping import Bool

from accountant.accountants import smallest
from accountant.contract import DependsOn
from accountant.events import Composed, Event, Leaf, NonPrivate
from privkit import partitions, plug
from privkit.defenses._base import Known
from privkit.defenses.vpp import Vpp
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import SeededNoise
from privkit.partitions._base import AbstractPartition, Memory, largest
from privkit.partitions.laplace import Laplace
from privkit.release import Prototypes

PACKAGE = "privkit.partitions"
DIM, SIZE, CLASSES, ROUNDS = 40, 7, 4, 4
LABELS = np.repeat(np.arange(CLASSES, dtype=np.int64), [5, 8, 20, 3])


def built(name: str) -> AbstractPartition:
    partition = plug.build(PACKAGE, name)
    assert isinstance(partition, AbstractPartition)
    return partition


every_partition = pytest.mark.parametrize(
    "partition", [built(n) for n in plug.names(PACKAGE)], ids=lambda p: p.name
)


def held(seed: int = 0, *, labels: np.ndarray = LABELS) -> Embeddings:
    """Return records whose classes differ on a few coordinates, other ones for every seed."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((len(labels), DIM))
    vectors[:, rng.permutation(DIM)[:SIZE]] += 3 * rng.standard_normal((CLASSES, SIZE))[labels]
    return Embeddings(vectors=vectors, labels=labels, encoder=DependsOn.PUBLIC)


def source(seed: int = 0) -> SeededNoise:
    return SeededNoise(np.random.default_rng(seed))


def choose(
    partition: AbstractPartition,
    seed: int,
    *,
    cost: Leaf | None,
    memory: Memory,
    embeddings: Embeddings | None = None,
) -> Bool[np.ndarray, " d"]:
    asked: dict[str, Any] = {"size": SIZE, "cost": cost, "public": held(99), "memory": memory}
    return partition.choose(embeddings or held(seed), **asked, noise=source(3))


def looks_at_nothing_for_free(partition: AbstractPartition) -> None:
    """Fail if a choice that costs nothing differs between two data sets of the client, in any round."""
    budget = partition.budget(epsilon=1.0, delta=1e-5, rounds=ROUNDS)
    rng, memory = np.random.default_rng(1), dict[str, np.ndarray]()
    for _ in range(ROUNDS):
        cost = partition.cost(budget, size=SIZE, dim=DIM, memory=memory)
        chosen = choose(partition, 0, cost=cost, memory=memory)
        assert chosen.sum() == SIZE
        if partition.private and cost is None:
            others = (
                held(5),
                held(0).with_vectors(np.zeros((len(LABELS), DIM))),
                held(6, labels=LABELS[::-1].copy()),
            )
            for other in others:
                again = choose(partition, 5, cost=cost, memory=memory, embeddings=other)
                assert (again == chosen).all(), f"{partition.name} reads private records for nothing"
        sent = Prototypes(vectors=rng.standard_normal((CLASSES, DIM)), labels=np.arange(CLASSES), counts=None)
        memory = dict(partition.remember(memory, sent, chosen))


@every_partition
def test_a_choice_that_costs_nothing_is_the_same_for_any_records(partition):
    looks_at_nothing_for_free(partition)


@every_partition
def test_a_choice_stays_in_its_budget_and_is_private_exactly_if_it_has_a_price(partition):
    budget = partition.budget(epsilon=1.0, delta=1e-5, rounds=ROUNDS)
    cost = partition.cost(budget, size=SIZE, dim=DIM, memory={})
    if budget is not None and cost is not None:
        assert smallest(cost, delta=1e-5).epsilon <= smallest(budget, delta=1e-5).epsilon * (1 + 1e-12)
    assert (budget is None) <= (cost is None or isinstance(cost, NonPrivate))
    assert partition.private == (not isinstance(cost, NonPrivate))


@every_partition
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_all_rounds_together_keep_the_promise(partition, epsilon):
    defense = Vpp(epsilon=epsilon, partition=partition)
    mechanism, noise, known = defense.mechanism(rounds=ROUNDS), source(), Known(public=held(99))
    events = list[Event]()
    for _ in range(ROUNDS):
        sent = mechanism.privatize(held(), noise, known)
        assert sent.event == mechanism.event(held(7), known)
        known = known._replace(memory=mechanism.remember(known, sent))
        events.append(sent.event)
    spent = smallest(Composed(events=tuple(events)), delta=1e-5).epsilon
    assert (spent <= epsilon) == partition.private
    assert (defense.promise is not None) == partition.private


# ---------------------------------------------------------------------- partitions that break the contract


class Peeping(AbstractPartition):
    """Takes the private coordinates of largest variance, and says that this is free."""

    def choose(self, embeddings: Embeddings, *, size: int, **asked: Any) -> Bool[np.ndarray, " d"]:
        return largest(embeddings.vectors.var(0), size)


class LatePeeping(Peeping):
    """Begins to look in the second round."""

    def choose(
        self, embeddings: Embeddings, *, memory: Memory, size: int, **asked: Any
    ) -> Bool[np.ndarray, " d"]:
        if memory:
            return super().choose(embeddings, size=size)
        return np.arange(embeddings.vectors.shape[1]) < size

    def remember(self, memory: Memory, payload: Prototypes, informative: Bool[np.ndarray, " d"]) -> Memory:
        return {"began": np.ones(1)}


@pytest.mark.parametrize("partition", [Peeping(), LatePeeping()])
def test_a_partition_that_looks_for_free_fails(partition):
    with pytest.raises(AssertionError, match="reads private records for nothing"):
        looks_at_nothing_for_free(partition)


class Free(Laplace):
    """Takes a share and states no cost."""

    def cost(self, budget: Leaf | None, *, size: int, dim: int, memory: Memory) -> None:
        return None


def test_a_partition_that_spends_and_states_no_cost_is_refused():
    with pytest.raises(InputError, match="states no cost; return what it spends"):
        Vpp(epsilon=1.0, partition=Free()).mechanism(rounds=1).privatize(held(), source())


# ---------------------------------------------------------------------- the example of the guide


def test_the_example_of_the_guide_is_found_and_keeps_the_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    guide = Path(__file__).parent.parent / "docs" / "partitions.md"
    (code,) = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "spread.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(partitions, "__path__", [*partitions.__path__, str(tmp_path)])
    assert "spread" in plug.names(PACKAGE)
    spread = built("spread")
    monkeypatch.delitem(sys.modules, f"{PACKAGE}.spread")
    looks_at_nothing_for_free(spread)
    wanted = np.sort(np.argsort(-held(99).vectors.var(axis=0))[:SIZE])
    assert np.flatnonzero(choose(spread, 0, cost=None, memory={})).tolist() == wanted.tolist()
    for check in (
        test_a_choice_stays_in_its_budget_and_is_private_exactly_if_it_has_a_price,
        lambda p: test_all_rounds_together_keep_the_promise(p, 1.0),
    ):
        check(spread)
    with pytest.raises(InputError, match=r"set split\.reference above 0"):
        spread.choose(held(), size=SIZE, cost=None, public=None, memory={}, noise=source())
