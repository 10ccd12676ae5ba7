"""Public data sets of domains, writers and medical pictures: miniatures in their layouts, read or refused by name."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privkit import cite, plug
from privkit.data._base import AbstractData
from privkit.data._folder_data import AbstractFolderData
from privkit.data.femnist import Femnist
from privkit.data.kvasir_capsule import KvasirCapsule
from privkit.data.medmnist import MedMnist
from privkit.errors import InputError
from tests import layouts

FOLDERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "office_home": ("OfficeHomeDataset_10072016", ("Art", "Clipart", "Product", "Real World")),
    "vlcs": ("VLCS", ("Caltech101", "LabelMe", "SUN09", "VOC2007")),
    "terra_incognita": ("terra_incognita", ("location_38", "location_43", "location_46", "location_100")),
}


def built(name: str, **settings: Any) -> AbstractFolderData:
    found = plug.build("privkit.data", {"name": name, **settings})
    assert isinstance(found, AbstractFolderData)
    return found


def refused(data: AbstractData, message: str) -> None:
    with pytest.raises(InputError, match=message):
        data.load()


# ---------------------------------------------------------------------- folders


@pytest.mark.parametrize("name", FOLDERS)
def test_domains_are_found_in_their_usual_folders_in_order(name, tmp_path):
    title, domains = FOLDERS[name]
    layouts.domain_folders(tmp_path / title, domains, classes=("bear", "lamp", "mug"))
    for root in (tmp_path, tmp_path / title):
        loaded = built(name, root=str(root), side=4).load()
        assert [d.name for d in loaded] == [d.lower().replace(" ", "_") for d in domains]
        assert all(d.records.shape == (9, 4, 4, 3) for d in loaded)
        assert all(d.labels.tolist() == [0] * 3 + [1] * 3 + [2] * 3 for d in loaded)
    data = built(name, root=str(tmp_path))
    assert data.class_names == ("bear", "lamp", "mug")
    assert len(data.files()) == 36
    assert cite.cited(type(data))


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_without_them_is_refused_with_the_layout(name, tmp_path):
    refused(built(name, root=str(tmp_path)), f"holds none of .* is read as {FOLDERS[name][0]}")


def test_lists_are_a_setting_of_data_sets_that_have_some(tmp_path):
    with pytest.raises(InputError, match="lists"):
        built("vlcs", root=str(tmp_path), lists=True)


def test_vlcs_divided_in_three_is_refused_with_a_way_out(tmp_path):
    layouts.domain_folders(tmp_path / "VLCS", FOLDERS["vlcs"][1])
    for part in ("train", "crossval", "test"):
        layouts.class_folders(tmp_path / "VLCS" / "SUN09" / part, {"0": 1, "1": 1})
    for name in ("dog", "house"):
        for path in (tmp_path / "VLCS" / "SUN09" / name).iterdir():
            path.unlink()
        (tmp_path / "VLCS" / "SUN09" / name).rmdir()
    refused(
        built("vlcs", root=str(tmp_path), side=4), "either class folders in it, or exactly train and test"
    )


# ---------------------------------------------------------------------- MedMNIST


def medmnist(path: Path, *, colour: bool = True, classes: int = 3, **changes: Any) -> Path:
    rng = np.random.default_rng(0)
    held: dict[str, Any] = {}
    for part, n in (("train", 24), ("val", 6), ("test", 12)):
        held[f"{part}_images"] = rng.integers(0, 256, (n, 28, 28, *((3,) if colour else ())), dtype=np.uint8)
        held[f"{part}_labels"] = (np.arange(n) % classes)[:, None].astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{name: array for name, array in (held | changes).items() if array is not None})
    return path


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("below", [".", "medmnist"])
def test_a_subset_of_medmnist_is_shared_out_and_tested_on_its_own_test_part(tmp_path, colour, below):
    path = medmnist(tmp_path / below / "bloodmnist.npz", colour=colour)
    data = MedMnist(root=tmp_path, subset="bloodmnist", clients=2, alpha=100.0, test_per_class=None)
    assert data.num_classes == 3
    assert list(data.files()) == ["bloodmnist.npz"]
    domains = data.load()
    held = np.load(path)
    assert sum(len(d.labels) for d in domains) == 24
    test = domains[0].test
    assert test is not None
    assert test is domains[1].test
    assert np.array_equal(test.records, held["test_images"])
    assert np.array_equal(test.labels, held["test_labels"][:, 0])
    pairs = zip(held["train_images"], held["train_labels"][:, 0], strict=True)
    rows = {image.tobytes(): label for image, label in pairs}
    assert all(rows[r.tobytes()] == y for d in domains for r, y in zip(d.records, d.labels, strict=True))
    assert cite.cited(MedMnist)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"train_labels": np.zeros((24, 14), np.uint8)}, "one class per picture"),
        ({"train_images": np.zeros((24, 8, 8, 8), np.uint8)}, "two dimensions"),
        ({"train_images": np.zeros((24, 8, 8), np.float32)}, "two dimensions"),
        ({"test_labels": np.full((12, 1), 9, np.uint8)}, "has label 9"),
        ({"test_images": None}, "holds nothing under 'test_images'"),
        ({"train_labels": np.full((24, 1), None, object)}, "cannot be read as a .npz file"),
    ],
)
def test_files_that_are_no_such_subset_are_refused(tmp_path, changes, said):
    medmnist(tmp_path / "pathmnist.npz", **changes)
    refused(MedMnist(root=tmp_path, clients=2, alpha=100.0), said)


def test_a_damaged_or_missing_file_is_refused(tmp_path):
    refused(MedMnist(root=tmp_path), "holds no pathmnist.npz")
    whole = medmnist(tmp_path / "pathmnist.npz").read_bytes()
    for content in (b"", b"no zip", whole[: len(whole) // 2]):
        (tmp_path / "pathmnist.npz").write_bytes(content)
        refused(MedMnist(root=tmp_path), "cannot be read as a .npz file")


# ---------------------------------------------------------------------- Kvasir-Capsule


@pytest.fixture
def kvasir(tmp_path: Path) -> Path:
    """Two classes of six pictures; four of each are in one list, two in the other."""
    listed: list[list[str]] = [[], []]
    for place, name in enumerate(("Blood - fresh", "Normal clean mucosa")):
        for i in range(6):
            path = tmp_path / "labelled_images" / name / f"{place}f_{i}.jpg"
            layouts.picture(path, seed=10 * place + i)
            listed[i >= 4].append(f"{path.name},{name}")
    (tmp_path / "official_splits").mkdir()
    for number, lines in enumerate(listed):
        text = "\n".join(["filename,label", *lines, ""])
        (tmp_path / "official_splits" / f"split_{number}.csv").write_text(text)
    return tmp_path


@pytest.mark.parametrize(("trained_on", "records", "tested"), [(0, 8, 4), (1, 4, 8)])
def test_the_lists_of_kvasir_capsule_say_what_is_trained_on(kvasir, trained_on, records, tested):
    data = KvasirCapsule(root=kvasir, side=4, clients=2, alpha=100.0, trained_on=trained_on)
    assert data.class_names == ("Blood - fresh", "Normal clean mucosa")
    domains = data.load()
    assert sum(len(d.labels) for d in domains) == records
    test = domains[0].test
    assert test is not None
    assert test.labels.tolist() == [0] * (tested // 2) + [1] * (tested // 2)
    assert test.records.shape == (tested, 4, 4, 3)
    own = {r.tobytes() for d in domains for r in d.records}
    assert own.isdisjoint({r.tobytes() for r in test.records})
    assert len(data.files()) == 14
    assert cite.cited(KvasirCapsule)


def test_no_more_pictures_of_kvasir_capsule_are_decoded_than_wanted(kvasir):
    for place, name in enumerate(("Blood - fresh", "Normal clean mucosa")):
        (kvasir / "labelled_images" / name / f"{place}f_3.jpg").write_bytes(b"damaged")
    data = KvasirCapsule(root=kvasir, side=4, clients=2, alpha=100.0, per_class=2)
    assert sum(len(d.labels) for d in data.load()) == 4
    refused(
        data.model_copy(update={"per_class": None}), "2 pictures of .* cannot be used: Blood - fresh/0f_3.jpg"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("filename,label\n9.jpg,Blood - fresh\n", "line 2: '9.jpg' of class 'Blood - fresh' is not there"),
        ("filename,label\n0f_0.jpg,Polyp\n", "of class 'Polyp' is in 'Blood - fresh'"),
        ("name,class\n0f_0.jpg,Polyp\n", "no columns filename and label"),
        ("filename,label\n", "names no pictures"),
        ("", "no columns filename and label"),
    ],
)
def test_a_list_that_does_not_fit_the_pictures_is_refused(kvasir, text, said):
    (kvasir / "official_splits" / "split_0.csv").write_text(text)
    refused(KvasirCapsule(root=kvasir, side=4, clients=2, alpha=100.0), said)


def test_kvasir_capsule_without_lists_or_pictures_or_with_a_name_twice_is_refused(kvasir, tmp_path):
    layouts.picture(kvasir / "labelled_images" / "Blood - fresh" / "1f_0.jpg", seed=99)
    refused(KvasirCapsule(root=kvasir, side=4, clients=2, alpha=100.0), "two pictures of one name")
    (kvasir / "official_splits" / "split_1.csv").unlink()
    refused(KvasirCapsule(root=kvasir), "holds no split_0.csv and split_1.csv")
    refused(KvasirCapsule(root=kvasir / "official_splits"), "holds no labelled_images")


# ---------------------------------------------------------------------- FEMNIST


def leaf(path: Path, writers: Mapping[str, list[int]], **changes: Any) -> None:
    rng = np.random.default_rng(len(writers))
    data = {
        name: {"x": rng.random((len(y), 784)).round(3).tolist(), "y": y} for name, y in writers.items()
    } | changes
    held = {"users": list(data), "num_samples": [], "user_data": data}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(held))


@pytest.fixture
def femnist(tmp_path: Path) -> Path:
    leaf(tmp_path / "femnist/data/train/a_0.json", {"few": [1, 1, 40], "many": [0, 1, 2, 3, 61]})
    leaf(tmp_path / "femnist/data/train/a_1.json", {"letters": [10, 11], "untested": [0, 1, 2, 3, 4]})
    leaf(tmp_path / "femnist/data/test/a_0.json", {"few": [1], "many": [0, 12], "letters": [10]})
    return tmp_path


@pytest.mark.parametrize(
    ("classes", "wanted"),
    [
        ("digits", {"many": ([0, 1, 2, 3], [0]), "few": ([1, 1], [1])}),
        ("all", {"many": ([0, 1, 2, 3, 61], [0, 12]), "few": ([1, 1, 40], [1]), "letters": ([10, 11], [10])}),
    ],
)
@pytest.mark.parametrize("below", [".", "femnist", "femnist/data"])
def test_writers_are_clients_the_most_industrious_first(femnist, below, classes, wanted):
    data = Femnist(root=femnist / below, clients=len(wanted), classes=classes)
    domains = data.load()
    assert [d.name for d in domains] == list(wanted)
    for domain in domains:
        assert domain.test is not None
        assert (domain.labels.tolist(), domain.test.labels.tolist()) == wanted[domain.name]
        assert domain.records.shape == (len(domain.labels), 28, 28)
        assert domain.records.dtype == np.uint8
    held = json.loads((femnist / "femnist/data/train/a_0.json").read_text())["user_data"]["many"]
    first = 255 * np.array(held["x"][0]).reshape(28, 28)
    assert np.abs(domains[0].records[0] - first).max() <= 0.5
    assert sorted(data.files()) == ["test/a_0.json", "train/a_0.json", "train/a_1.json"]
    assert cite.cited(Femnist)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "train/a_2.json",
            {"many": {"x": [[0.5] * 784], "y": [1]}},
            "writer many, and so has an earlier file",
        ),
        ("train/a_2.json", {"odd": {"x": [[0.5] * 783], "y": [1]}}, "no rows of 784 numbers .* writer odd"),
        ("train/a_2.json", {"odd": {"x": [[1.5] * 784], "y": [1]}}, "no rows of 784 numbers"),
        ("train/a_2.json", {"odd": {"x": [[0.5] * 784], "y": [62]}}, "has label 62"),
        ("train/a_2.json", {"odd": {"x": [[0.5] * 784], "y": [1.5]}}, "no whole numbers under 'y'"),
        ("train/a_2.json", {"odd": [1]}, "no rows of 784 numbers"),
    ],
)
def test_a_file_that_is_none_of_leafs_is_refused(femnist, name, content, said):
    leaf(femnist / "femnist/data" / name, {}, **content)
    refused(Femnist(root=femnist, clients=1), said)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"user_data": []}'])
def test_text_that_is_no_file_of_leaf_is_refused(femnist, text):
    (femnist / "femnist/data/test/a_0.json").write_text(text)
    refused(Femnist(root=femnist, clients=1), "cannot be read as JSON|no writers under 'user_data'")


def test_more_clients_than_writers_are_refused(femnist, tmp_path):
    refused(Femnist(root=femnist, clients=3), "2 writers have records of classes digits")
    refused(Femnist(root=femnist / "femnist" / "data" / "train"), "no train and test with .json files")


def test_writers_of_femnist_train_and_are_tested_on_their_own_test_records(tmp_path):
    from privkit.study import load
    from privkit.train.loop import train

    rng = np.random.default_rng(0)
    for part, n in (("train", 40), ("test", 20)):
        leaf(tmp_path / "data" / part / "a.json", {w: rng.integers(0, 2, n).tolist() for w in ("one", "two")})
    (tmp_path / "run.yaml").write_text(
        f"data: {{name: femnist, root: {tmp_path}, clients: 2}}\n"
        f"encoder: {{name: projected, output_dim: 16, encoder: efficientnet_lite0}}\ndefense: none\nrounds: 2\n"
        "model: {transform: rotation, temperature: 10.0}\nmethod: fedot\nheld_out: two\n"
    )
    (path,) = train(load(tmp_path / "run.yaml"), tmp_path / "run", device="cpu")
    import pyarrow.parquet as pq

    rows = pq.read_table(path / "metrics.parquet").to_pylist()
    assert {(row["client"], row["domain"]) for row in rows} == {(0, "one"), (-1, "two")}
    assert all((20 * row["accuracy"]) % 1 == pytest.approx(0, abs=1e-9) for row in rows)
