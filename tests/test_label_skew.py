"""Label skew: every record has one owner, shares follow the Dirichlet distribution, clients without records are
refused, dropped or drawn anew; and the data sets that are shared out so."""

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privkit import plug
from privkit.data import _dirichlet
from privkit.data._base import AbstractData, Domain, Labelled
from privkit.data._skew import Empty, capped, clients_of
from privkit.data._split import Shares, divide
from privkit.data.cifar10 import Cifar10
from privkit.data.cifar100 import Cifar100, Labels
from privkit.data.fashion_mnist import SHA256, FashionMnist
from privkit.errors import InputError
from privkit.noise import Purpose, keyed
from tests import layouts

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=60).map(np.array)


def refused(data: AbstractData, message: str) -> None:
    with pytest.raises(InputError, match=message):
        data.load()


def numbered(labels: np.ndarray) -> Labelled:
    """Return records that are their own row numbers."""
    return Labelled(np.arange(len(labels)), labels.astype(np.int64))


# the draw


@given(LABELS, st.integers(1, 9), st.sampled_from([1e-6, 0.1, 0.5, 1.0, 10.0, 1e6]), st.integers(0, 99))
def test_every_record_has_one_owner(labels: np.ndarray, clients: int, alpha: float, seed: int) -> None:
    rows = _dirichlet.shared_out(labels, clients=clients, alpha=alpha, rng=np.random.default_rng(seed))
    assert len(rows) == clients
    assert sorted(np.concatenate(rows)) == list(range(len(labels)))
    assert all((np.diff(own) > 0).all() for own in rows)


@given(LABELS, st.integers(1, 9), st.floats(0.05, 20), st.integers(0, 99))
def test_shares_are_rounded_down_and_the_last_client_takes_the_rest(
    labels: np.ndarray, clients: int, alpha: float, seed: int
) -> None:
    rows = _dirichlet.shared_out(labels, clients=clients, alpha=alpha, rng=np.random.default_rng(seed))
    twin = np.random.default_rng(seed)
    for label in sorted(set(labels.tolist())):
        mixed = twin.permutation([i for i, y in enumerate(labels) if y == label]).tolist()
        shares = twin.dirichlet([alpha] * clients)
        for client in range(clients - 1):
            own = [mixed.pop(0) for _ in range(int(shares[client] * (labels == label).sum()))]
            assert set(own) == {row for row in rows[client] if labels[row] == label}
        assert set(mixed) == {row for row in rows[-1] if labels[row] == label}


@pytest.mark.parametrize("alpha", [0.1, 0.5, 5.0])
def test_shares_have_the_mean_and_spread_of_the_dirichlet_distribution(alpha: float) -> None:
    draws, clients, count = 400, 5, 2_000
    labels = np.repeat(np.arange(draws), count)  # every class is a draw of its own
    rows = _dirichlet.shared_out(labels, clients=clients, alpha=alpha, rng=np.random.default_rng(1))
    shares = np.bincount(labels[rows[0]], minlength=draws) / count
    variance = (1 / clients) * (1 - 1 / clients) / (clients * alpha + 1)
    assert shares.mean() == pytest.approx(1 / clients, abs=4 * np.sqrt(variance / draws))
    assert shares.var() == pytest.approx(variance, rel=0.35)


def test_a_small_alpha_gives_a_class_to_one_client_and_a_large_one_equal_shares() -> None:
    labels = np.repeat(np.arange(10), 1000)
    for alpha, least, most in ((1e-3, 0.95, 1.0), (1e6, 0.25, 0.26)):
        rows = _dirichlet.shared_out(labels, clients=4, alpha=alpha, rng=np.random.default_rng(0))
        largest = np.max([np.bincount(labels[own], minlength=10) for own in rows], axis=0) / 1000
        assert least <= np.mean(largest) <= most


@given(st.integers(0, 50), st.integers(1, 9))
def test_alpha_0_gives_contiguous_blocks_of_equal_size(count: int, clients: int) -> None:
    rows = _dirichlet.blocks(count, clients=clients)
    assert np.concatenate(rows).tolist() == list(range(count))
    sizes = [len(own) for own in rows]
    assert max(sizes) - min(sizes) <= 1
    assert len(rows) == clients


# clients


def made(
    labels: np.ndarray, *, clients: int, alpha: float, empty: Empty = Empty.REFUSE, seed: int = 0
) -> tuple:
    test = numbered(np.arange(3))
    return clients_of(numbered(labels), test, clients=clients, alpha=alpha, seed=seed, empty=empty)


def test_all_clients_share_one_test_object_and_are_numbered() -> None:
    domains = made(np.repeat(np.arange(3), 200), clients=12, alpha=1.0)
    assert [domain.name for domain in domains] == [f"client-{i:02}" for i in range(12)]
    assert all(domain.test is domains[0].test for domain in domains)
    for domain in domains:
        assert np.array_equal(domain.labels, domain.records // 200)
    assert [d.name for d in made(np.zeros(300, int), clients=101, alpha=0.0)][:2] == [
        "client-000",
        "client-001",
    ]


def test_the_partition_seed_alone_decides() -> None:
    labels = np.repeat(np.arange(3), 200)
    one, same, other = (made(labels, clients=4, alpha=0.5, seed=seed) for seed in (7, 7, 8))
    assert all(np.array_equal(a.records, b.records) for a, b in zip(one, same, strict=True))
    assert not all(np.array_equal(a.records, b.records) for a, b in zip(one, other, strict=True))


def test_the_draw_has_a_stream_that_no_split_of_a_run_has(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[tuple[int, Purpose, int, int]] = []

    def noted(seed: int, purpose: Purpose, *, round: int = 0, client: int = 0) -> np.random.Generator:
        used.append((seed, purpose, round, client))
        return keyed(seed, purpose, round=round, client=client)

    monkeypatch.setattr("privkit.data._skew.keyed", noted)
    monkeypatch.setattr("privkit.data._split.keyed", noted)
    labels = np.repeat(np.arange(4, dtype=np.int64), 30)
    made(labels, clients=3, alpha=10.0, seed=5)
    shares = Shares(pool=0.6, reference=0.1, test=0.3)
    for client in range(3):
        divide(labels, num_classes=4, shares=shares, seed=5, client=client, name="all")
    assert [purpose for _, purpose, _, _ in used] == [Purpose.PARTITION] + [Purpose.SPLIT] * 3
    drawn = np.array([keyed(s, p, round=t, client=m).standard_normal(4000) for s, p, t, m in used])
    assert np.abs(np.corrcoef(drawn) - np.eye(4)).max() < 5 / 4000**0.5


def test_the_draw_is_independent_of_the_split_of_a_run_with_the_same_seed() -> None:
    labels = np.zeros(4000, np.int64)
    labels[2000:] = 1
    (first, *_) = made(labels, clients=2, alpha=1e6, seed=3)
    parts = divide(
        labels, num_classes=2, shares=Shares(pool=1.0, reference=0.0, test=0.0), seed=3, client=0, name="all"
    )
    both = len(np.intersect1d(first.records, parts.members))
    assert abs(both - 1000) < 4 * np.sqrt(4000 / 16)


def test_a_client_without_records_is_refused_with_the_way_out() -> None:
    with pytest.raises(
        InputError,
        match=r"client-03 and 2 more of 6 clients got none of 3 records \(alpha=0, draws: 1\); .*empty: drop",
    ):
        made(np.arange(3), clients=6, alpha=0.0)
    with pytest.raises(InputError, match=r"of 50 clients got none of 40 records \(alpha=0.1, draws: 1\)"):
        made(np.arange(40) % 4, clients=50, alpha=0.1)


def test_a_dropped_client_leaves_its_number_free() -> None:
    labels = np.repeat(np.arange(2), 20)
    domains = made(labels, clients=15, alpha=0.1, empty=Empty.DROP)
    rows = clients_of(numbered(labels), numbered(labels), clients=15, alpha=0.1, seed=0, empty=Empty.DROP)
    assert 1 < len(domains) < 15
    assert all(len(domain.labels) for domain in domains)
    assert sum(len(domain.labels) for domain in domains) == 40
    assert [d.name for d in domains] == [d.name for d in rows]
    numbers = [int(domain.name.removeprefix("client-")) for domain in domains]
    assert numbers == sorted(set(numbers))
    assert numbers != list(range(len(domains)))
    first = next(n for n in range(15) if n not in numbers)
    said = f"client-{first:02} and {14 - len(domains)} more of 15 clients got no records and take no part."
    assert {domain.notes for domain in domains} == {(said,)}


def test_parts_without_records_are_refused() -> None:
    none, some = numbered(np.zeros(0, int)), numbered(np.arange(3))
    for train, test, part in ((none, some, "training"), (some, none, "test")):
        with pytest.raises(InputError, match=f"there are no {part} records; add some"):
            clients_of(train, test, clients=1, alpha=1.0, seed=0, empty=Empty.DROP)


def test_redrawing_ends_with_everybody_served_or_after_100_draws() -> None:
    labels = np.repeat(np.arange(4), 25)
    seed = next(s for s in range(99) if len(made(labels, clients=6, alpha=0.2, empty=Empty.DROP, seed=s)) < 6)
    served = made(labels, clients=6, alpha=0.2, empty=Empty.REDRAW, seed=seed)
    assert len(served) == 6
    untouched = next(
        s for s in range(99) if len(made(labels, clients=6, alpha=0.2, empty=Empty.DROP, seed=s)) == 6
    )
    for empty in Empty:  # a draw that serves everybody is kept as it is
        domains = made(labels, clients=6, alpha=0.2, empty=empty, seed=untouched)
        assert np.array_equal(
            domains[0].records, made(labels, clients=6, alpha=0.2, seed=untouched)[0].records
        )
    with pytest.raises(InputError, match="draws: 100"):
        made(np.arange(5) % 4, clients=6, alpha=0.2, empty=Empty.REDRAW)
    with pytest.raises(InputError, match="alpha=0, draws: 1"):
        made(np.arange(5), clients=6, alpha=0.0, empty=Empty.REDRAW)


@given(LABELS, st.integers(1, 5) | st.none())
def test_a_cap_takes_the_first_of_each_class(labels: np.ndarray, per_class: int | None) -> None:
    kept = capped(numbered(labels), per_class)
    wanted = [i for i, y in enumerate(labels) if per_class is None or (labels[:i] == y).sum() < per_class]
    assert kept.records.tolist() == wanted


# Fashion-MNIST


@pytest.fixture
def fashion(tmp_path: Path) -> Path:
    layouts.idx_files(tmp_path, train=200, test=50)
    return tmp_path


def test_fashion_mnist_is_shared_out_over_twenty_clients_who_share_the_test_set(fashion: Path) -> None:
    data = FashionMnist(root=fashion, only_published=False, alpha=10.0, test_per_class=3)
    domains = data.load()
    assert len(domains) == 20
    assert data.num_classes == 10
    stored = np.random.default_rng(200).integers(0, 256, (200, 28, 28), dtype=np.uint8)
    rows = {image.tobytes(): row for row, image in enumerate(stored)}
    found = [
        (rows[image.tobytes()], y) for d in domains for image, y in zip(d.records, d.labels, strict=True)
    ]
    assert sorted(found) == [(row, row % 10) for row in range(200)]
    assert isinstance(domains[0].test, Labelled)
    assert np.bincount(domains[0].test.labels).tolist() == [3] * 10
    held = np.random.default_rng(50).integers(0, 256, (50, 28, 28), dtype=np.uint8)
    assert np.array_equal(domains[0].test.records, held[:30])


def test_other_files_of_the_same_names_are_refused_unless_allowed(fashion: Path) -> None:
    refused(FashionMnist(root=fashion), "is not the published file .*set only_published: false")
    assert {len(digest) for pair in SHA256.values() for digest in pair} == {64}


@pytest.mark.parametrize("inside", ["FashionMNIST/raw", "fashion-mnist", "."])
@pytest.mark.parametrize("packed", [True, False])
def test_the_four_files_are_found_packed_or_not(tmp_path: Path, inside: str, packed: bool) -> None:
    layouts.idx_files(tmp_path / inside, packed=packed)
    (only,) = FashionMnist(root=tmp_path, only_published=False, clients=1).load()
    assert len(only.labels) == 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda r: (r / "train-labels-idx1-ubyte.gz").unlink(),
            "lacks one of the four idx files; Fashion-MNIST is read",
        ),
        (lambda r: shutil.rmtree(r), "does not exist; .*data: digits"),
        (lambda r: (shutil.rmtree(r), r.write_bytes(b"")), "is a file; unpack it"),
        (
            lambda r: layouts.write(r / "t10k-labels-idx1-ubyte.gz", layouts.idx_bytes(np.full(50, 10))),
            "has label 10",
        ),
        (
            lambda r: [
                layouts.write(r / f"t10k-{name}-ubyte.gz", layouts.idx_bytes(np.zeros((0, *size))))
                for name, size in (("images-idx3", (28, 28)), ("labels-idx1", ()))
            ],
            "t10k-images-idx3-ubyte.gz says 0 x 28 x 28 values, not 1 to",
        ),
        (
            lambda r: layouts.write(
                r / "t10k-images-idx3-ubyte.gz", layouts.idx_bytes(np.zeros((50, 30, 28)))
            ),
            r"training images are of shape \[28, 28\] and test images of \[30, 28\]; get both parts",
        ),
        (
            lambda r: (r / "train-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b"),
            "train-images.* cannot be read",
        ),
    ],
)
def test_damaged_files_are_refused(fashion: Path, change: Callable, message: str) -> None:
    change(fashion)
    refused(FashionMnist(root=fashion, only_published=False), message)


def test_a_manifest_pins_the_files(fashion: Path) -> None:
    FashionMnist(root=fashion).write_manifest(fashion / "kept.txt")
    data = FashionMnist(
        root=fashion, only_published=False, manifest=fashion / "kept.txt", alpha=10.0, clients=3
    )
    assert len(data.load()) == 3
    layouts.idx_files(fashion, train=210, test=50)
    refused(data, r"2 differ \(train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz\)")


# CIFAR


def pictures(values: np.ndarray) -> np.ndarray:
    """Return CIFAR's rows as pictures, one value at a time."""
    made = np.empty((len(values), 32, 32, 3), np.uint8)
    for channel in range(3):
        for row in range(32):
            start = 1024 * channel + 32 * row
            made[:, row, :, channel] = values[:, start : start + 32]
    return made


@pytest.fixture
def cifar(tmp_path: Path) -> Path:
    layouts.cifar10_pickles(tmp_path / "cifar-10-batches-py")
    layouts.cifar100_pickles(tmp_path / "cifar-100-python")
    layouts.cifar10_binary(tmp_path / "bytes/cifar-10-batches-bin")
    layouts.cifar100_binary(tmp_path / "bytes/cifar-100-binary")
    return tmp_path


def test_cifar10_joins_its_batches_in_order(cifar: Path) -> None:
    data = Cifar10(root=cifar, clients=1)
    (only,) = data.load()
    wanted = np.concatenate([pictures(layouts.cifar_values(20, seed=i)) for i in range(1, 6)])
    assert np.array_equal(only.records, wanted)
    assert only.labels.tolist() == [i % 10 for i in range(20)] * 5
    assert only.test is not None
    assert np.array_equal(only.test.records, pictures(layouts.cifar_values(20, seed=0)))
    assert data.num_classes == 10


def equal(ours: tuple[Domain, ...], theirs: tuple[Domain, ...]) -> bool:
    pairs = zip(ours, theirs, strict=True)
    return all(np.array_equal(a.records, b.records) and np.array_equal(a.labels, b.labels) for a, b in pairs)


def test_every_version_of_cifar_holds_the_same(cifar: Path) -> None:
    settings = {"clients": 2, "alpha": 5.0}
    wanted = Cifar10(root=cifar, **settings).load()
    for root in (cifar / "cifar-10-batches-py", cifar / "bytes", cifar / "bytes/cifar-10-batches-bin"):
        assert equal(Cifar10(root=root, **settings).load(), wanted)
    for kind in Labels:
        wanted = Cifar100(root=cifar, labels=kind, **settings).load()
        assert equal(Cifar100(root=cifar / "bytes", labels=kind, **settings).load(), wanted)


def test_pickles_of_python_3_are_read_too(cifar: Path) -> None:
    wanted = Cifar10(root=cifar, clients=1).load()
    for seed, name in enumerate(["test_batch", *(f"data_batch_{i}" for i in range(1, 6))]):
        batch = {"data": layouts.cifar_values(20, seed=seed), "labels": np.arange(20) % 10}
        layouts.dump(cifar / "cifar-10-batches-py" / name, batch)
    assert equal(Cifar10(root=cifar, clients=1).load(), wanted)


def test_cifar100_has_classes_and_groups_of_them(cifar: Path) -> None:
    fine, coarse = (Cifar100(root=cifar, labels=kind, clients=1) for kind in (Labels.FINE, Labels.COARSE))
    assert (fine.num_classes, coarse.num_classes) == (100, 20)
    assert fine.load()[0].labels.tolist() == [i % 100 for i in range(200)]
    assert coarse.load()[0].labels.tolist() == [i % 20 for i in range(200)]
    assert np.array_equal(fine.load()[0].records, pictures(layouts.cifar_values(200, seed=1)))


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (b"", "is no pickle of arrays and lists"),
        (layouts.python2_dict({b"labels": layouts.python2_numbers([1])}), "holds nothing under 'data'"),
        (layouts.python2_numbers([1]) + b".", "holds nothing under 'data'; it is no batch of CIFAR"),
        (
            layouts.python2_dict(
                {
                    b"data": layouts.python2_bytes_array(layouts.cifar_values(2, seed=0)),
                    b"labels": layouts.python2_numbers([3, 10]),
                }
            ),
            r"has label 10 \(record 1\); wanted are 0 to 9",
        ),
        (
            layouts.python2_dict(
                {
                    b"data": layouts.python2_bytes_array(layouts.cifar_values(2, seed=0)),
                    b"labels": layouts.python2_numbers([3]),
                }
            ),
            "has 1 labels for 2 images",
        ),
        (
            layouts.python2_dict(
                {
                    b"data": layouts.python2_bytes_array(np.zeros((2, 5), np.uint8)),
                    b"labels": layouts.python2_numbers([3, 4]),
                }
            ),
            "holds no images of 3072 bytes",
        ),
        (pickle.dumps({"data": np.zeros((0, 3072), np.uint8), "labels": []}), "holds no records"),
        (
            pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [1.7, 2]}),
            "holds no whole numbers under 'labels'",
        ),
        (
            pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": ["3", "4"]}),
            "holds no whole numbers under 'labels'",
        ),
        (
            pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [10**400, 1]}),
            "holds no whole numbers under 'labels'",
        ),
        (
            pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": np.array([0.0, 1.0])}),
            "holds no whole numbers under 'labels'",
        ),
    ],
)
def test_an_odd_batch_is_refused(cifar: Path, batch: bytes, message: str) -> None:
    (cifar / "cifar-10-batches-py/data_batch_3").write_bytes(batch)
    refused(Cifar10(root=cifar), f"data_batch_3 {message}")


def test_a_batch_that_would_run_code_is_refused(cifar: Path) -> None:
    layouts.dump(cifar / "cifar-100-python/train", {"data": layouts.RunsCode(cifar / "made")}, protocol=2)
    refused(Cifar100(root=cifar), "train names .*could run code")
    assert not (cifar / "made").exists()


def test_odd_bytes_are_refused(cifar: Path) -> None:
    path = cifar / "bytes/cifar-10-batches-bin/data_batch_2.bin"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    refused(Cifar10(root=cifar / "bytes"), "data_batch_2.bin has 61,459 bytes, not a multiple of 3073")
    path.write_bytes(b"\x0a" + whole[1:])
    refused(Cifar10(root=cifar / "bytes"), r"has label 10 \(record 0\)")
    path.write_bytes(b"")
    refused(Cifar10(root=cifar / "bytes"), "has 0 bytes")


@pytest.mark.parametrize("cls", [Cifar10, Cifar100])
def test_missing_batches_are_refused(tmp_path: Path, cls: type) -> None:
    refused(cls(root=tmp_path), r"lacks .*; CIFAR-100? is read as cifar-100?-.*Krizhevsky.*data: digits")


# settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": -0.1}, "alpha=-0.1: input should be greater than or equal to 0"),
        ({"alpha": float("nan")}, "finite"),
        ({"alpha": 1e7}, "less than or equal to 1000000"),
        ({"clients": 0}, "clients=0: input should be greater than or equal to 1"),
        ({"clients": 2.5}, "valid integer"),
        ({"clients": True}, "valid integer"),
        ({"empty": "ignore"}, "should be 'refuse', 'drop' or 'redraw'"),
        ({"partition_seed": -1}, "greater than or equal to 0"),
        ({"per_class": 0}, "greater than or equal to 1"),
        ({"domains": ["photo"]}, "unknown key 'domains'"),
    ],
)
@pytest.mark.parametrize("name", ["fashion_mnist", "cifar10", "cifar100", "ag_news"])
def test_wrong_settings_are_refused(name: str, settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plug.build("privkit.data", {"name": name, "root": "data", **settings})


@pytest.mark.parametrize("name", ["fashion_mnist", "cifar10", "cifar100", "ag_news"])
def test_settings_come_back(name: str) -> None:
    data = plug.build("privkit.data", {"name": name, "root": "data", "alpha": 1, "empty": "drop"})
    assert data.settings()["empty"] == "drop"
    assert plug.build("privkit.data", data.settings()) == data
