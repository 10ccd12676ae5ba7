"""Pictures and digits from the public folder layouts: read right, in a fixed order, or refused by name."""

import bz2
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from PIL import Image

from privkit import plug
from privkit import study as study_file
from privkit.data import _pickle, _share
from privkit.data._base import AbstractData, Domain
from privkit.data._decode import in_colour
from privkit.data._folders import natural
from privkit.data.digits5 import Digits5
from privkit.data.fashion_mnist import FashionMnist
from privkit.data.office_caltech import OfficeCaltech
from privkit.data.pacs import Pacs
from privkit.errors import InputError
from privkit.models._base import AbstractEncoder
from privkit.store import Run
from privkit.train.loop import train
from tests import layouts


@pytest.fixture
def pacs(tmp_path: Path) -> Path:
    """A folder that holds PACS: two classes of three pictures in each domain."""
    layouts.domain_folders(tmp_path / "PACS")
    return tmp_path


def squared(path: Path, side: int) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB").resize((side, side), Image.Resampling.BICUBIC))


def same(ours: tuple[Domain, ...], theirs: tuple[Domain, ...]) -> bool:
    return all(
        a.name == b.name and np.array_equal(a.records, b.records) and np.array_equal(a.labels, b.labels)
        for a, b in zip(ours, theirs, strict=True)
    )


def refused(data: AbstractData, message: str) -> None:
    with pytest.raises(InputError, match=message) as found:
        data.load()
    assert str(found.value).count(". ") == 0, "one sentence"


# folders of pictures


def test_each_domain_is_read_class_by_class_in_counting_order(pacs: Path) -> None:
    layouts.picture(pacs / "PACS/photo/dog/pic_10.jpg", seed=7)
    domains = Pacs(root=pacs, side=8).load()
    assert [domain.name for domain in domains] == ["photo", "art_painting", "cartoon", "sketch"]
    wanted = [f"dog/pic_{i}.jpg" for i in (1, 2, 3, 10)] + [f"house/pic_{i}.jpg" for i in (1, 2, 3)]
    photo = domains[0]
    assert photo.records.dtype == np.uint8
    assert photo.labels.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert photo.test is None
    for record, name in zip(photo.records, wanted, strict=True):
        assert np.array_equal(record, squared(pacs / "PACS/photo" / name, 8))


def test_root_may_be_in_the_home_folder(pacs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(pacs))
    data = plug.build("privkit.data", {"name": "pacs", "root": "~/PACS", "side": 4})
    assert isinstance(data, Pacs)
    assert len(data.load()) == 4


@pytest.mark.parametrize("inside", ["PACS", "pacs", "PACS/kfold", "pacs/images", "."])
def test_root_is_the_folder_of_the_domains_or_one_above(pacs: Path, inside: str) -> None:
    home = pacs / "moved" / inside
    shutil.copytree(pacs / "PACS", home)
    wanted = Pacs(root=pacs / "PACS", side=4).load()
    assert same(Pacs(root=pacs / "moved", side=4).load(), wanted)
    assert same(Pacs(root=home, side=4).load(), wanted)


@pytest.mark.parametrize(
    "title", ["Office-Caltech-10", "Office_Caltech_10", "office_caltech_10", "OfficeCaltech"]
)
def test_office_caltech_is_found_under_its_usual_names(tmp_path: Path, title: str) -> None:
    layouts.domain_folders(tmp_path / title, layouts.OFFICE, classes=("back_pack", "bike", "mug"))
    data = OfficeCaltech(root=tmp_path, side=4)
    assert [domain.name for domain in data.load()] == ["amazon", "caltech", "dslr", "webcam"]
    assert data.num_classes == 3
    assert data.class_names == ("back_pack", "bike", "mug")


def test_side_is_224_pixels_by_default(pacs: Path) -> None:
    (photo,) = Pacs(root=pacs, domains=("photo",)).load()
    assert photo.records.shape == (6, 224, 224, 3)


def test_a_domain_keeps_its_labels_whichever_others_are_loaded(pacs: Path) -> None:
    layouts.class_folders(pacs / "PACS/sketch", {"cat": 1})
    for domain in Pacs(root=pacs, side=4, domains=("sketch", "photo")).load():
        assert (
            domain.labels.tolist()
            == {"sketch": [0, 1, 1, 1, 2, 2, 2], "photo": [1, 1, 1, 2, 2, 2]}[domain.name]
        )
    assert Pacs(root=pacs, domains=("photo",)).num_classes == 3


def test_train_and_test_folders_become_the_parts_of_a_domain(pacs: Path) -> None:
    shutil.rmtree(pacs / "PACS/photo")
    train = layouts.class_folders(pacs / "PACS/photo/train", {"dog": 3, "house": 2})
    test = layouts.class_folders(pacs / "PACS/photo/test", {"dog": 1, "house": 1}, seed=50)
    photo, sketch = Pacs(root=pacs, side=6, domains=("photo", "sketch"), keep=0.4).load()
    assert photo.labels.tolist() == [0, 1]
    assert any(np.array_equal(photo.records[0], squared(path, 6)) for path in train["dog"])
    assert photo.test is not None
    assert photo.test.labels.tolist() == [0, 1]
    assert np.array_equal(photo.test.records[1], squared(test["house"][0], 6))
    assert sketch.test is None


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        ("L", ".png"),
        ("RGBA", ".png"),
        ("P", ".png"),
        ("1", ".bmp"),
        ("CMYK", ".jpg"),
        ("RGB", ".webp"),
        ("L", ".TIFF"),
    ],
)
def test_every_kind_of_picture_becomes_colour(pacs: Path, mode: str, ending: str) -> None:
    path = pacs / f"PACS/photo/dog/pic_0{ending}"
    Image.fromarray(layouts.colour(3)).convert(mode).save(path)
    (photo,) = Pacs(root=pacs, side=5, domains=("photo",)).load()
    assert np.array_equal(photo.records[0], squared(path, 5))


def test_a_palette_with_transparent_entries_is_read_without_complaint(pacs: Path) -> None:
    path = pacs / "PACS/photo/dog/pic_0.png"
    Image.fromarray(layouts.colour(3)).convert("P").save(path, transparency=bytes([0, 128, 255]))
    (photo,) = Pacs(root=pacs, side=5, domains=("photo",)).load()
    plain = Image.open(path)
    plain.info.clear()
    assert np.array_equal(
        photo.records[0], np.asarray(plain.convert("RGB").resize((5, 5), Image.Resampling.BICUBIC))
    )


def test_what_is_no_picture_is_passed_over(pacs: Path) -> None:
    before = Pacs(root=pacs, side=4).load()
    for name in ("photo/dog/Thumbs.db", "photo/dog/._pic_1.jpg", "photo/dog/notes.txt", "photo/.DS_Store"):
        (pacs / "PACS" / name).write_bytes(b"no picture")
    (pacs / "PACS/__MACOSX/photo/cow").mkdir(parents=True)
    assert same(Pacs(root=pacs, side=4).load(), before)


def saved(picture: np.ndarray, path: Path) -> Path:
    Image.fromarray(picture).save(path)
    return path


@pytest.mark.parametrize("ending", [".png", ".tif", ".pgm"])
def test_grey_levels_of_16_bits_become_8(pacs: Path, ending: str) -> None:
    levels = np.linspace(0, 65535, 20 * 30).astype(np.uint16).reshape(20, 30)
    path = pacs / f"PACS/photo/dog/pic_0{ending}"
    if ending == ".pgm":
        path.write_bytes(b"P5 30 20 65535 " + levels.astype(">u2").tobytes())
    else:
        saved(levels, path)
    found = np.asarray(in_colour(path))
    assert np.array_equal(found[..., 0], np.rint(levels / 257))
    assert np.array_equal(found[..., 0], found[..., 2])
    (photo,) = Pacs(root=pacs, side=4, domains=("photo",)).load()
    assert len(photo.labels) == 7


def nothing(path: Path) -> None:
    path.symlink_to("nowhere")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def hidden_deeper(path: Path) -> None:
    layouts.picture(path)


def postscript(path: Path) -> None:
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n%%EOF\n")


def blank(width: int, height: int) -> Callable[[Path], None]:
    return lambda path: Image.new("1", (width, height)).save(path)


@pytest.mark.parametrize(
    ("make", "name", "reason"),
    [
        (nothing, "pic_0.png", "No such file or directory"),
        (loop, "pic_0.png", "Too many levels of symbolic links"),
        (os.mkfifo, "pic_0.png", "it is no ordinary file"),
        (lambda path: path.symlink_to("/dev/zero"), "pic_0.png", "it is no ordinary file"),
        (Path.mkdir, "pic_0.png", "it is a folder, not a file"),
        (hidden_deeper, "more/still/pic_0.png", "it lies in a folder inside its class folder"),
        (postscript, "pic_0.png", "it is no picture of a kind that is read"),
        (lambda path: saved(np.eye(9, dtype=np.float32), path), "pic_0.tif", "32-bit numbers"),
        (lambda path: saved(np.eye(9, dtype=np.int32), path), "pic_0.tif", "32-bit numbers"),
        (blank(10_000, 6_800), "pic_0.png", "it has 10,000 x 6,800 pixels, more than 67,108,864"),
        (blank(10_000, 9_000), "pic_0.png", "it has more than 67,108,864 pixels"),
        (blank(20_000, 9_000), "pic_0.png", "it has more than 67,108,864 pixels"),
    ],
)
def test_what_is_called_a_picture_is_read_or_counted(
    pacs: Path, make: Callable[[Path], object], name: str, reason: str
) -> None:
    make(pacs / "PACS/photo/dog" / name)
    data = {"root": pacs, "side": 4, "domains": ("photo",)}
    refused(Pacs(**data), rf"1 of 7 images cannot be used \(photo/dog/{name}: .*{reason}.*skip_bad: true")
    (photo,) = Pacs(**data, skip_bad=True).load()
    assert photo.left_out == (f"photo/dog/{name}",)
    assert len(photo.labels) == 6


def test_a_folder_that_holds_itself_is_gone_through_once(pacs: Path) -> None:
    (pacs / "PACS/photo/dog/again").symlink_to(".")
    layouts.picture(pacs / "PACS/photo/dog/more/pic_0.png")
    (pacs / "PACS/photo/dog/more/again").symlink_to("..")
    data = Pacs(root=pacs, side=4, domains=("photo",), skip_bad=True)
    (photo,) = data.load()
    assert len(photo.labels) == 6
    assert "photo/dog/more/pic_0.png" in photo.left_out
    assert len(data.files()) < 60


def test_folders_that_cannot_be_looked_at_are_refused(pacs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (pacs / "PACS/photo/cat").symlink_to("nowhere")
    refused(Pacs(root=pacs, side=4), "photo/cat may be a class folder but cannot be looked at .*move it away")
    (pacs / "PACS/photo/cat").unlink()
    listed = Path.iterdir

    def closed(folder: Path) -> Iterator[Path]:
        if folder.name == "house":
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", closed)
    for skip_bad in (False, True):
        refused(
            Pacs(root=pacs, side=4, skip_bad=skip_bad),
            r"photo/house cannot be listed \(Permission denied\); make it readable, or move it away",
        )


def test_pictures_beside_train_and_test_are_refused(pacs: Path) -> None:
    shutil.rmtree(pacs / "PACS/photo")
    for part in ("train", "test"):
        layouts.class_folders(pacs / "PACS/photo" / part, {"dog": 1, "house": 1})
    layouts.picture(pacs / "PACS/photo/pic_1.jpg")
    refused(Pacs(root=pacs, side=4), "photo/pic_1.jpg lies beside folders train and test")


def test_one_name_in_two_forms_of_unicode_is_one_class(tmp_path: Path) -> None:
    composed, apart = "caf\u00e9", "cafe\u0301"
    layouts.domain_folders(tmp_path / "one", per_class=9, classes=(composed, "dog"))
    layouts.domain_folders(tmp_path / "two", per_class=9, classes=(apart, "dog"))
    one, two = (Pacs(root=tmp_path / part, side=4, keep=0.4) for part in ("one", "two"))
    assert one.class_names == two.class_names == (composed, "dog")
    assert same(one.load(), two.load())
    assert one.files().keys() == two.files().keys()
    shutil.copytree(tmp_path / "one/photo" / composed, tmp_path / "two/sketch" / composed)
    refused(
        two, r"'caf\\xe9' and 'cafe\\u0301' .*differ only in spelling|'cafe\\u0301' and 'caf\\xe9' .*spelling"
    )
    layouts.picture(tmp_path / f"one/photo/dog/{composed}.jpg")
    layouts.picture(tmp_path / f"one/photo/dog/{apart}.jpg")
    refused(one, "differ only in spelling; rename one")


def test_a_name_that_is_no_text_is_refused(pacs: Path) -> None:
    shutil.copy(pacs / "PACS/photo/dog/pic_1.jpg", pacs / "PACS/photo/dog" / os.fsdecode(b"\xff.jpg"))
    refused(Pacs(root=pacs, side=4, keep=0.5), r"photo/dog/\\udcff.jpg' is no name in UTF-8; rename it")


class Means(AbstractEncoder):
    """The mean of each colour."""

    @property
    def dim(self) -> int:
        return 3

    @property
    def trained_on(self) -> str:
        return "nothing"

    @property
    def fingerprint(self) -> str:
        return "means"

    def settings(self) -> dict[str, Any]:
        return {"name": "means"}

    def encode(self, records: np.ndarray) -> np.ndarray:
        return records.mean(axis=(1, 2)).astype(np.float32)


def test_a_run_says_and_keeps_what_its_data_leave_out(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(
        f"rounds: 1\ndata: {{name: pacs, root: {damaged}, side: 16, skip_bad: true, "
        "domains: [photo, sketch]}\n"
        "encoder: usps_cnn\nmethod: {name: fedproto, predict: prototype}\ndefense: none\n"
    )
    for domain in ("photo", "sketch"):
        layouts.class_folders(damaged / "PACS" / domain, {"dog": 12, "house": 12}, ending=".bmp")
    cell = study_file.load(tmp_path / "study.yaml").cells["study"].model_copy(update={"encoder": Means()})
    study, said = study_file.Study(cells={"study": cell}, seeds=1), list[str]()
    train(study, tmp_path / "run", device="cpu", notice=said.append)
    (loaded,) = [sentence for sentence in said if "cannot be used" in sentence]
    assert loaded.startswith("domain photo: 5 of 33 images")
    hashes = Run(tmp_path / "run").info.data
    assert hashes["left_out.photo"] == "5"
    assert "left_out.sketch" not in hashes
    for domain in ("photo", "art_painting", "cartoon", "sketch"):
        (damaged / "PACS" / domain / "dog").rename(damaged / "PACS" / domain / "hound")
    with pytest.raises(InputError, match="classes"):
        train(study, tmp_path / "run", device="cpu")


@pytest.fixture
def damaged(pacs: Path) -> Path:
    """PACS with one empty, one cut and three senseless pictures among photo's six."""
    whole = pacs / "PACS/photo/house/pic_1.jpg"
    (pacs / "PACS/photo/dog/pic_2.jpg").write_bytes(b"")
    whole.write_bytes(whole.read_bytes()[:300])
    for name in ("dog/pic_4.png", "house/pic_5.jpg", "house/pic_6.gif.jpg"):
        (pacs / "PACS/photo" / name).write_bytes(b"<html>not found</html>")
    return pacs


def test_unreadable_pictures_are_named_and_counted(damaged: Path) -> None:
    refused(
        Pacs(root=damaged, side=4),
        r"domain photo: 5 of 9 images cannot be used \(photo/dog/pic_2.jpg: .*; photo/dog/pic_4.png: .*; "
        r"photo/house/pic_1.jpg: .*; …\); .*skip_bad: true",
    )


def test_unreadable_pictures_are_left_out_when_asked_for(damaged: Path) -> None:
    (photo,) = Pacs(root=damaged, side=4, skip_bad=True, domains=("photo",)).load()
    bad = ("dog/pic_2.jpg", "dog/pic_4.png", "house/pic_1.jpg", "house/pic_5.jpg", "house/pic_6.gif.jpg")
    assert photo.left_out == tuple(f"photo/{name}" for name in bad)
    (note,) = photo.notes
    assert note.startswith("domain photo: 5 of 9 images cannot be used (photo/dog/pic_2.jpg: ")
    assert note.endswith("; …) and are left out.")
    names = ("dog/pic_1.jpg", "dog/pic_3.jpg", "house/pic_2.jpg", "house/pic_3.jpg")
    assert photo.labels.tolist() == [0, 0, 1, 1]
    for record, name in zip(photo.records, names, strict=True):
        assert np.array_equal(record, squared(damaged / "PACS/photo" / name, 4))


def test_a_domain_of_nothing_but_unreadable_pictures_is_refused(pacs: Path) -> None:
    for path in (pacs / "PACS/cartoon").rglob("*.png"):
        path.write_bytes(b"no picture")
    refused(
        Pacs(root=pacs, side=4, skip_bad=True),
        r"domain cartoon has no training pictures \(6 cannot be used\); add",
    )


def test_a_class_may_be_missing_or_have_one_picture_but_a_domain_may_not_be_empty(pacs: Path) -> None:
    shutil.rmtree(pacs / "PACS/photo/dog")
    for path in (pacs / "PACS/sketch/dog").iterdir():
        path.unlink()
    for path in [*(pacs / "PACS/cartoon/house").iterdir()][1:]:
        path.unlink()
    photo, cartoon, sketch = Pacs(root=pacs, side=4, domains=("photo", "cartoon", "sketch")).load()
    assert photo.labels.tolist() == sketch.labels.tolist() == [1, 1, 1]
    assert cartoon.labels.tolist() == [0, 0, 0, 1]
    shutil.rmtree(pacs / "PACS/photo/house")
    refused(
        Pacs(root=pacs, side=4), "domain photo has no training pictures; add some, or leave it out of domains"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda home: shutil.rmtree(home),
            r"root='.*' does not exist; PACS is read as PACS/\{photo.*data: objects",
        ),
        (lambda home: (shutil.rmtree(home), home.write_bytes(b"")), "is a file; unpack it"),
        (
            lambda home: (shutil.rmtree(home), home.mkdir()),
            "holds none of photo, art_painting, cartoon, sketch; PACS",
        ),
        (lambda home: shutil.rmtree(home / "sketch"), "holds no sketch; PACS is read as"),
        (
            lambda home: layouts.class_folders(home / "Art Painting", {"dog": 1}),
            "are two spellings of domain art_paint",
        ),
        (
            lambda home: layouts.class_folders(home / "photo", {"Dog": 1}),
            "'[dD]og' and '[dD]og' .* only in spelling",
        ),
        (lambda home: layouts.class_folders(home / "kfold/photo", {"dog": 1}), "both hold domains of PACS"),
        (lambda home: layouts.picture(home / "photo/pic_9.jpg"), "lies outside of any class folder"),
        (
            lambda home: layouts.class_folders(home / "photo/train", {}) or (home / "photo/train").mkdir(),
            "exactly train",
        ),
        (
            lambda home: [(home / "photo" / part / "dog").mkdir(parents=True) for part in ("train", "test")],
            "holds dog, house, test, train; keep either class folders in it, or exactly train and test",
        ),
        (
            lambda home: [shutil.rmtree(p) for p in home.glob("*/dog")],
            "has 1 class folders in photo, art_painting",
        ),
    ],
)
def test_a_folder_that_is_not_as_wanted_is_refused(pacs: Path, change, message: str) -> None:
    change(pacs / "PACS")
    refused(Pacs(root=pacs / "PACS", side=4), message)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"domains": ["photos"]}, r"domain 'photos' is unknown; .*Did you mean photo\?"),
        ({"domains": ["photo", "photo"]}, "named twice"),
        ({"domains": []}, "at least 1 item"),
        ({"side": 0}, "greater than or equal to 1"),
        ({"keep": 0}, "greater than 0"),
        ({"keep": 1.5}, "less than or equal to 1"),
        ({"test_share": 1.0}, "less than 1"),
        ({"root": None}, "root"),
        ({"skip": True}, "Did you mean skip_bad"),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plug.build("privkit.data", {"name": "pacs", "root": "data", **settings})


@pytest.mark.parametrize("name", ["pacs", "office_caltech", "digits5"])
def test_settings_come_back(name: str) -> None:
    data = plug.build("privkit.data", {"name": name, "root": "data", "keep": 0.3, "manifest": "m.txt"})
    assert data.settings()["root"] == "data"
    assert plug.build("privkit.data", data.settings()) == data


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=8), st.text("abcABC_é²", max_size=3))
def test_names_are_ordered_as_people_count(numbers: list[int], stem: str) -> None:
    names = [f"{stem}{number}.jpg" for number in numbers]
    counted = [f"{stem}{number}.jpg" for number in sorted(numbers)]
    assert sorted(names, key=natural) == counted


# shares


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=40),
    st.floats(0.01, 1),
    st.floats(0.01, 1),
)
def test_shares_are_stratified_nested_and_chosen_by_name(labels: list[int], one: float, other: float) -> None:
    y, names = np.array(labels), tuple(f"record {i}" for i in range(len(labels)))
    small, large = (_share.of_each_class(y, names, share=s, purpose="keep") for s in sorted((one, other)))
    assert set(small) <= set(large)
    for label in np.unique(y):
        total, kept = (y == label).sum(), (y[large] == label).sum()
        assert kept == max(1, round_half_up(max(one, other) * total))
    order = np.random.default_rng(0).permutation(len(y))
    again = _share.of_each_class(
        y[order], tuple(names[i] for i in order), share=max(one, other), purpose="keep"
    )
    assert sorted(order[again]) == large.tolist()


def round_half_up(value: float) -> int:
    return int(np.floor(value + 0.5))


def test_two_purposes_choose_independently() -> None:
    names = tuple(map(str, range(4000)))
    one, other = (
        _share.of_each_class(np.zeros(4000, int), names, share=0.5, purpose=p) for p in ("keep", "test")
    )
    assert abs(len(np.intersect1d(one, other)) - 1000) < 4 * np.sqrt(4000 / 16)


def test_test_share_is_held_out_and_keep_leaves_it_whole(tmp_path: Path) -> None:
    layouts.domain_folders(tmp_path, per_class=10)
    everything = Pacs(root=tmp_path, side=4, domains=("photo",)).load()[0]
    (whole,) = Pacs(root=tmp_path, side=4, domains=("photo",), test_share=0.2).load()
    (part,) = Pacs(root=tmp_path, side=4, domains=("photo",), test_share=0.2, keep=0.3).load()
    assert whole.test is not None
    assert part.test is not None
    assert np.bincount(whole.labels).tolist() == [8, 8]
    assert np.bincount(part.labels).tolist() == [2, 2]
    assert np.array_equal(whole.test.records, part.test.records)
    assert np.bincount(part.test.labels).tolist() == [2, 2]
    together = {r.tobytes() for r in whole.records} | {r.tobytes() for r in whole.test.records}
    assert together == {r.tobytes() for r in everything.records}
    assert {r.tobytes() for r in part.records} < {r.tobytes() for r in whole.records}


def test_the_only_picture_of_a_class_is_trained_on(pacs: Path) -> None:
    layouts.class_folders(pacs / "PACS/photo", {"zebra": 1})
    (photo,) = Pacs(root=pacs, side=4, domains=("photo",), test_share=0.9).load()
    assert photo.test is not None
    assert photo.labels.tolist() == [0, 1, 2]
    assert photo.test.labels.tolist() == [0, 0, 1, 1]


def test_what_keep_leaves_out_is_never_opened(tmp_path: Path) -> None:
    layouts.domain_folders(tmp_path, per_class=10)
    data = Pacs(root=tmp_path, side=4, domains=("photo",), keep=0.3)
    before = data.load()
    paths = sorted((tmp_path / "photo").rglob("*.jpg"), key=lambda path: natural(str(path)))
    names = tuple(path.relative_to(tmp_path).as_posix() for path in paths)
    labels = np.array([path.parent.name == "house" for path in paths], int)
    kept = _share.of_each_class(labels, names, share=0.3, purpose="keep")
    assert len(kept) == 6
    for row in np.setdiff1d(np.arange(20), kept):
        paths[row].write_bytes(b"no picture")
    assert same(data.load(), before)


# manifests


def test_a_manifest_names_what_differs_is_missing_and_is_extra(pacs: Path) -> None:
    kept = pacs / "kept.manifest"
    Pacs(root=pacs).write_manifest(kept)
    data = Pacs(root=pacs, side=4, manifest=kept, domains=("photo",))
    assert same(data.load(), Pacs(root=pacs, side=4, domains=("photo",)).load())
    (pacs / "PACS/sketch/dog/pic_1.jpeg").rename(pacs / "PACS/sketch/dog/pic_4.jpeg")
    content = bytearray((pacs / "PACS/photo/dog/pic_1.jpg").read_bytes())
    content[-1] ^= 1
    (pacs / "PACS/photo/dog/pic_1.jpg").write_bytes(content)
    refused(
        data,
        r"manifest='.*kept.manifest': 1 differ \(photo/dog/pic_1.jpg\), 1 are missing \(sketch/dog/pic_1.jpeg\), "
        r"1 are extra \(sketch/dog/pic_4.jpeg\); restore them",
    )


def test_a_manifest_is_sha256_size_and_path_and_does_not_depend_on_the_root(pacs: Path) -> None:
    import hashlib

    one, two = Pacs(root=pacs).current_manifest(), Pacs(root=pacs / "PACS").current_manifest()
    assert one == two
    first = pacs / "PACS/art_painting/dog/pic_1.JPG"
    digest = hashlib.sha256(first.read_bytes()).hexdigest()
    assert one.text.splitlines()[0] == f"{digest}  {first.stat().st_size}  art_painting/dog/pic_1.JPG"
    assert one.digest == hashlib.sha256(one.text.encode()).hexdigest()
    assert len(one.files) == 24


def test_a_manifest_that_is_missing_or_damaged_is_refused(pacs: Path) -> None:
    refused(
        Pacs(root=pacs, manifest=pacs / "none"), r"manifest='.*none' cannot be read .*write_manifest\(path\)"
    )
    (pacs / "odd").write_text("12  photo/dog/pic_1.jpg\n")
    refused(Pacs(root=pacs, manifest=pacs / "odd"), "odd, line 1: .* is not sha256, size and path")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t + t.splitlines()[0] + "\n", "line 25: 'art_painting/dog/pic_1.JPG' is listed twice"),
        (lambda t: t.replace("  ", "  " + "9" * 5000, 1), "line 1: .* is not sha256, size and path"),
        (lambda t: t + "\n", "line 25: '' is not sha256"),
    ],
)
def test_a_manifest_says_each_thing_once(pacs: Path, change, message: str) -> None:
    kept = pacs / "kept.manifest"
    Pacs(root=pacs).write_manifest(kept)
    kept.write_text(change(kept.read_text()))
    refused(Pacs(root=pacs, manifest=kept), message)


@pytest.mark.parametrize("name", ["a\nb.jpg", "a\rb.jpg"])
def test_a_name_with_a_line_break_is_not_written_into_a_manifest(pacs: Path, name: str) -> None:
    layouts.picture(pacs / "PACS/photo/dog" / name)
    with pytest.raises(InputError, match=r"file name 'photo/dog/a\\[nr]b.jpg' cannot be a line"):
        Pacs(root=pacs).write_manifest(pacs / "kept.manifest")


@pytest.mark.parametrize("name", ["a\u2028b.jpg", "a\x0bb.jpg", "a\x85b.jpg", "  é .jpg"])
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_what_is_written_into_a_manifest_can_be_read(pacs: Path, name: str, ending: bytes) -> None:
    layouts.picture(pacs / "PACS/photo/dog" / name)
    kept = pacs / "kept.manifest"
    Pacs(root=pacs).write_manifest(kept)
    kept.write_bytes(kept.read_bytes().replace(b"\n", ending))
    assert len(Pacs(root=pacs, side=4, manifest=kept).load()) == 4


# published lists


def kfold(home: Path, domain: str, parts: dict[str, list[str]]) -> None:
    for part, lines in parts.items():
        (home / f"{domain}_{part}_kfold.txt").write_text("".join(f"{line}\n" for line in lines))


def entries(numbers: tuple[int, ...]) -> list[str]:
    return [
        f"photo/{name}/pic_{i}.jpg {label}" for label, name in ((1, "dog"), (2, "house")) for i in numbers
    ]


@pytest.mark.parametrize("place", ["PACS", "PACS/splits", "splits"])
def test_the_lists_of_pacs_hold_out_what_training_does_not_name(pacs: Path, place: str) -> None:
    (pacs / place).mkdir(exist_ok=True)
    kfold(
        pacs / place,
        "photo",
        {"train": entries((1, 3)), "crossval": entries((2,)), "test": entries((1, 2, 3))},
    )
    (photo,) = Pacs(root=pacs, side=4, domains=("photo",), lists=True).load()
    assert photo.labels.tolist() == [0, 0, 1, 1]
    assert photo.test is not None
    assert photo.test.labels.tolist() == [0, 1]
    assert np.array_equal(photo.test.records[1], squared(pacs / "PACS/photo/house/pic_2.jpg", 4))
    (ignored,) = Pacs(root=pacs, side=4, domains=("photo",)).load()
    assert ignored.test is None
    assert len(ignored.labels) == 6


def test_wrong_entries_of_a_list_are_refused_or_left_out(pacs: Path) -> None:
    # in the published lists, one picture has label 0 in crossval and its right one in test
    held_out = ["photo/dog/pic_2.jpg 0", "photo/house/pic_2.jpg 1", "photo/dog/pic_9.jpg 1"]
    test = [*entries((1,)), "photo/dog/pic_2.jpg 1"]
    kfold(pacs / "PACS", "photo", {"train": entries((1,)), "crossval": held_out, "test": test})
    data = {"root": pacs, "side": 4, "domains": ("photo",), "lists": True}
    refused(
        Pacs(**data),
        r"4 of 6 images cannot be used \(photo/dog/pic_2.jpg: a list gives it label 0 of 1 to 2.*; …\); "
        r"1 in its lists name no picture that is there \(dog/pic_9.jpg\); .*skip_bad: true",
    )
    refused(Pacs(**data, skip_bad=True), "domain photo has no test pictures")
    kfold(pacs / "PACS", "photo", {"test": entries((1, 3))})
    (photo,) = Pacs(**data, skip_bad=True).load()
    assert photo.test is not None
    assert len(photo.labels) == len(photo.test.labels) == 2
    assert len(photo.left_out) == 2


def test_an_entry_that_names_no_picture_leaves_no_picture_out(pacs: Path) -> None:
    lines = [*entries((1, 2)), "photo/dog/gone.jpg 1"]
    kfold(pacs / "PACS", "photo", {"train": lines, "crossval": entries((3,)), "test": []})
    data = {"root": pacs, "side": 4, "domains": ("photo",), "lists": True}
    refused(Pacs(**data), r"domain photo: 1 in its lists name no picture that is there \(dog/gone.jpg\); ")
    (photo,) = Pacs(**data, skip_bad=True).load()
    assert photo.test is not None
    assert (len(photo.labels), len(photo.test.labels), photo.left_out) == (4, 2, ())
    assert photo.notes == (
        "domain photo: 1 in its lists name no picture that is there (dog/gone.jpg) and are passed over.",
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("photo/dog/pic_1.jpg", "train_kfold.txt, line 2: 'photo/dog/pic_1.jpg' is no picture and number"),
        ("photo/dog/pic_1.jpg one", "is no picture and number"),
        ("photo/dog/pic_1.jpg " + "9" * 5000, "line 2: 'photo/dog/pic_1.jpg 999.* is no picture and number"),
        ("sketch/dog/pic_1.jpg 1", "is no picture and number such as photo/dog/1.jpg 1"),
    ],
)
def test_a_line_that_is_no_entry_is_refused(pacs: Path, line: str, message: str) -> None:
    kfold(pacs / "PACS", "photo", {"train": ["", line], "crossval": [], "test": []})
    refused(Pacs(root=pacs, side=4, lists=True), message)


def test_a_list_that_is_no_utf_8_is_refused(pacs: Path) -> None:
    kfold(pacs / "PACS", "photo", {"train": [], "crossval": [], "test": []})
    (pacs / "PACS/photo_train_kfold.txt").write_text("photo/dog/pic_1.jpg 1", encoding="utf-16")
    refused(Pacs(root=pacs, lists=True), "photo_train_kfold.txt cannot be read as UTF-8 .*get the list again")


def test_lists_that_are_missing_are_refused(pacs: Path) -> None:
    refused(Pacs(root=pacs, lists=True), "photo_train_kfold.txt is missing; add it, or set lists: false")
    kfold(pacs / "PACS", "photo", {"train": entries((1,))})
    refused(Pacs(root=pacs, lists=True), "photo_crossval_kfold.txt is missing")


@pytest.fixture
def office(tmp_path: Path) -> Path:
    return layouts.domain_folders(
        tmp_path / "office_caltech_10", layouts.OFFICE, classes=("back_pack", "mug")
    )


def office_lists(home: Path, below: str, protocol: int) -> None:
    for domain, ending in zip(layouts.OFFICE, (".jpg", ".JPG", ".png", ".jpeg"), strict=True):
        for part, numbers in (("train", (1, 2)), ("test", (3,))):
            paths = [f"{below}{domain}/{c}/pic_{i}{ending}" for c in ("back_pack", "mug") for i in numbers]
            names = [c for c in ("back_pack", "mug") for _ in numbers]
            pair = (paths, names) if protocol < 4 else (np.array(paths), np.array(names))
            layouts.dump(home / f"{domain}_{part}.pkl", pair, protocol=protocol)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("below", ["office_caltech_10/", "", "../data/office_caltech_10/"])
def test_the_lists_that_fedbn_published_are_followed(office: Path, below: str, protocol: int) -> None:
    office_lists(office, below, protocol)
    amazon, _, dslr, _ = OfficeCaltech(root=office.parent, side=4, lists=True).load()
    assert amazon.labels.tolist() == [0, 0, 1, 1]
    assert dslr.test is not None
    assert dslr.test.labels.tolist() == [0, 1]
    assert np.array_equal(dslr.test.records[0], squared(office / "dslr/back_pack/pic_3.png", 4))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((["office_caltech_10/dslr/mug/pic_1.jpg"], ["mug"]), "is no path of a picture of amazon"),
        ((["amazon/mug/pic_1.jpg"], ["mug", "mug"]), "1 paths but 2 class names"),
        (3, "is not a pair of paths and class names"),
        ((["a"], ["b"], ["c"]), "is not a pair of paths and class names"),
        (
            (["amazon/mug/pic_1.jpg"], ["cup"]),
            "mug/pic_1.jpg: a list gives it label 'cup', its folder another",
        ),
        ((["amazon/mug/../../../x.jpg"], ["mug"]), "name no picture that is there .mug/../../../x.jpg"),
    ],
)
def test_a_list_of_fedbn_that_is_odd_is_refused(office: Path, value: object, message: str) -> None:
    office_lists(office, "", 4)
    layouts.dump(office / "amazon_train.pkl", value)
    refused(OfficeCaltech(root=office, side=4, lists=True), message)


# pickles


def test_a_pickle_that_would_run_code_is_refused_before_it_does(office: Path) -> None:
    office_lists(office, "", 4)
    for protocol in range(6):
        layouts.dump(
            office / "amazon_train.pkl", ([layouts.RunsCode(office / "made")], ["mug"]), protocol=protocol
        )
        refused(OfficeCaltech(root=office, side=4, lists=True), "amazon_train.pkl names .*could run code")
        assert not (office / "made").exists()


@pytest.mark.parametrize(
    "value",
    [len, Path("x"), np.random.default_rng, np.float64, complex(1, 2), np.ma.masked_array([1]), range(3)],
)
def test_only_arrays_lists_text_and_numbers_are_opened(tmp_path: Path, value: object) -> None:
    with pytest.raises(InputError, match=r"x\.pkl names .*which could run code"):
        _pickle.read(layouts.dump(tmp_path / "x.pkl", [value]))


@pytest.mark.parametrize("protocol", range(6))
def test_arrays_come_back_under_every_protocol(tmp_path: Path, protocol: int) -> None:
    value = (np.arange(6, dtype=np.uint8).reshape(2, 3), ["é", b"\xff"], np.int64(3), {"a": 1.5, "b": None})
    path = layouts.dump(tmp_path / "x.pkl", value, protocol=protocol)
    old = path.read_bytes().replace(b"numpy._core.", b"numpy.core.") if protocol < 4 else path.read_bytes()
    path.write_bytes(old)  # as numpy 1 wrote it
    array, texts, number, rest = _pickle.read(path)
    assert np.array_equal(array, value[0])
    assert (texts, number, rest) == value[1:]


@pytest.mark.parametrize("content", [b"", b"junk", b"\x80\x04N", b"cos\nsystem\n(S'true'\ntR."])
def test_a_damaged_or_dangerous_pickle_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.pkl").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.pkl (is no pickle of arrays|names os\.system)"):
        _pickle.read(tmp_path / "x.pkl")


class Kind:
    """A dtype as an attacker writes it: built as one thing, turned into another."""

    def __init__(self, code: str, state: tuple | None) -> None:
        self.made = (np.dtype, (code, False, True), *([] if state is None else [state]))

    def __reduce__(self) -> tuple:
        return self.made


class Bytes:
    """An array as an attacker writes it."""

    def __init__(self, kind: object, content: object, shape: tuple = (20,)) -> None:
        self.state = (1, shape, kind, False, content)

    def __reduce__(self) -> tuple:
        rebuild = np.array(0).__reduce__()[0]
        return (rebuild, (np.ndarray, (0,), b"b"), self.state)


OBJECTS = (3, "|", None, ("a",), {"a": (Kind("O8", None), 0)}, 8, 1, 0)
U8 = (3, "|", None, None, None, -1, -1, 0)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Bytes(Kind("V8", OBJECTS), b"A" * 160), "type 'V8'"),
        (Bytes(Kind("u8", (*OBJECTS[:3], ("a",), {}, 8, 1, 0)), b"A" * 160), "an array of records"),
        (Bytes(Kind("u8", (3, "<", (Kind("O8", None), (1,)), None, None, 8, 8, 0)), b"A" * 160), "type 'O8'"),
        (Bytes(Kind("u8", (3, "<", (8, (1,)), None, None, 8, 8, 0)), b"A" * 160), "an array of records"),
        (Bytes(Kind("u8", (4, "<", None, None, None, 8, 8, 0, {})), b"A" * 160), "an array of records"),
        (Bytes(Kind("O8", None), b"A" * 160), "type 'O8'"),
        (Bytes(Kind("M8", None), b"A" * 160), "type 'M8'"),
        (Bytes(Kind("f16", None), b"A" * 320), "type 'f16'"),
        (Bytes(Kind("u1", U8), b"A" * 19), "with 19 bytes, not 20"),
        (Bytes(Kind("u1", U8), b"A", (-1,)), "shape"),
        (Bytes(Kind("u1", U8), b"A", (2**40, 0, True)), "shape"),
        (Bytes(Kind("u1", U8), [1] * 20), "not bytes of one type"),
        (Bytes(np.dtype("U1"), b"\xff" * 80), "no character"),
        (np.array([None, {}], object), "type 'O8'"),
        (np.zeros(2, [("a", "u1")]), "type 'V1'"),
        (np.zeros(2, "M8[s]"), "type 'M8'"),
        (np.longdouble(1), "type 'f16'"),
        (np.dtype("u1"), "a Kind, which is no list"),
        ({1, 2}, "names __builtin__.set|a set, which is no list"),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_arrays_of_anything_but_plain_numbers_and_text_are_refused(
    tmp_path: Path, value: object, said: str, protocol: int
) -> None:
    with pytest.raises(InputError, match=said):
        _pickle.read(layouts.dump(tmp_path / "x.pkl", [value], protocol=protocol))


def test_bytes_of_a_pickle_are_never_taken_for_addresses(tmp_path: Path) -> None:
    path = layouts.dump(tmp_path / "x.pkl", Bytes(Kind("V8", OBJECTS), b"A" * 160), protocol=2)
    code = "import sys, pathlib; from privkit.data import _pickle; print(_pickle.read(pathlib.Path(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1  # an error, not a signal
    assert "InputError" in done.stderr


@pytest.mark.parametrize(
    "content",
    [
        b"cnumpy\ndtype\n}b.",  # functions are not changed
        b"cnumpy\ndtype\n(N}X\x04\x00\x00\x00_callNsN\x86tb.",
        b"cnumpy\nndarray\n(I3\ntR.",
        b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR.",
        b"cnumpy\ndtype\n)\x81.",
        b"]r\xff\xff\xff\xff.",  # a note far beyond the file
        b"]p4000000000\n.",
        b"]q\x00h\x00a.",  # a list that holds itself
        b"(" * 10**5 + b".",
        b"\x80\x04\x8e" + (10**15).to_bytes(8, "little") + b"x",
        b"I" + b"9" * 5000 + b"\n.",
    ],
)
def test_pickles_made_to_harm_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.pkl").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.pkl is no pickle of arrays and lists"):
        _pickle.read(tmp_path / "x.pkl")


@given(st.data())
@limits(deadline=None, max_examples=40)
def test_plain_arrays_come_back_as_numpy_pickled_them(data: st.DataObject) -> None:
    kinds = st.sampled_from(["?", "u1", "<i8", ">i4", "<f4", ">f8", "S3", "<U2", ">U5", "f2"])
    array = data.draw(npst.arrays(data.draw(kinds), npst.array_shapes(min_dims=0, max_dims=3, min_side=0)))
    array = np.asfortranarray(array) if data.draw(st.booleans()) else array
    with tempfile.TemporaryDirectory() as folder:
        found = _pickle.read(layouts.dump(Path(folder) / "x", array, protocol=data.draw(st.integers(0, 5))))
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.shape == array.shape
    np.testing.assert_array_equal(found, array)
    assert found.flags.writeable


def test_the_one_function_of_old_pickles_reads_bytes_and_nothing_else(tmp_path: Path) -> None:
    call = b"c_codecs\nencode\n(Va\nV%s\ntR."
    (tmp_path / "x.pkl").write_bytes(call % b"latin1")
    assert _pickle.read(tmp_path / "x.pkl") == b"a"
    (tmp_path / "x.pkl").write_bytes(call % b"zlib_codec")
    with pytest.raises(InputError, match="bytes written as 'zlib_codec'"):
        _pickle.read(tmp_path / "x.pkl")


# digits


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    layouts.idx_files(tmp_path / "MNIST/raw")
    layouts.usps_files(tmp_path / "USPS")
    layouts.svhn_files(tmp_path / "SVHN")
    for part, count in (("imgs_train", 2), ("imgs_valid", 1)):
        layouts.class_folders(
            tmp_path / "synthetic_digits" / part, {str(d): count for d in range(10)}, seed=count
        )
    return tmp_path


def test_four_digit_domains_in_colour_with_their_own_test_parts(digits: Path) -> None:
    domains = Digits5(root=digits).load()
    assert [domain.name for domain in domains] == ["mnist", "usps", "svhn", "syn"]
    for domain in domains:
        assert domain.records.shape == (20, 32, 32, 3)
        assert np.bincount(domain.labels).tolist() == [2] * 10
        assert domain.test is not None
        assert np.bincount(domain.test.labels).tolist() == [1] * 10


def test_mnist_is_grey_in_three_channels(digits: Path) -> None:
    (mnist,) = Digits5(root=digits, side=28, domains=("mnist",)).load()
    stored = np.random.default_rng(20).integers(0, 256, (20, 28, 28), dtype=np.uint8)
    assert np.array_equal(mnist.records, np.repeat(stored[..., None], 3, axis=-1))
    (large,) = Digits5(root=digits, domains=("mnist",)).load()
    wanted = Image.fromarray(stored[3]).resize((32, 32), Image.Resampling.BICUBIC)
    assert np.abs(large.records[3, ..., 0].astype(int) - np.asarray(wanted)).max() <= 1


def test_usps_has_digit_0_as_label_1_and_grey_from_minus_1_to_1(digits: Path) -> None:
    (usps,) = Digits5(root=digits, side=16, domains=("usps",)).load()
    values = np.random.default_rng(20).uniform(-1, 1, (20, 256)).round(3)
    grey = np.floor((values.astype(np.float32) + 1) / 2 * 255).reshape(20, 16, 16)
    assert np.array_equal(usps.records[..., 0], grey)
    assert usps.labels.tolist() == [*range(10), *range(10)]


def test_svhn_has_digit_0_as_label_10(digits: Path) -> None:
    (svhn,) = Digits5(root=digits, domains=("svhn",)).load()
    stored = np.random.default_rng(20).integers(0, 256, (32, 32, 3, 20), dtype=np.uint8)
    assert svhn.labels[:10].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert np.array_equal(svhn.records[5], stored[..., 5])


def test_syn_is_read_from_either_of_its_layouts(digits: Path) -> None:
    (one,) = Digits5(root=digits, domains=("syn",)).load()
    (digits / "synthetic_digits").rename(digits / "syn")
    for before, after in (("imgs_train", "train"), ("imgs_valid", "val")):
        (digits / "syn" / before).rename(digits / "syn" / after)
    (other,) = Digits5(root=digits, domains=("syn",)).load()
    assert same((one,), (other,))
    assert one.test is not None
    assert np.array_equal(one.test.records[0], squared(digits / "syn/val/0/pic_1.jpg", 32))


def test_keep_leaves_a_share_of_training_and_all_tests_packed_or_not(digits: Path) -> None:
    packed = Digits5(root=digits, keep=0.5, domains=("mnist", "svhn")).load()
    for domain in packed:
        assert np.bincount(domain.labels).tolist() == [1] * 10
        assert domain.test is not None
        assert len(domain.test.labels) == 10
    for path in (digits / "MNIST/raw").iterdir():
        path.unlink()
    layouts.idx_files(digits / "MNIST/raw", packed=False)
    assert same(Digits5(root=digits, keep=0.5, domains=("mnist", "svhn")).load(), packed)


def test_the_partitions_that_fedbn_published_are_joined(tmp_path: Path) -> None:
    home = tmp_path / "digit_dataset"
    shapes = {"MNIST": (28, 28), "USPS": (16, 16), "SVHN": (32, 32, 3), "SynthDigits": (32, 32, 3)}
    for name, shape in shapes.items():
        layouts.fedbn_digits(home / name, shape)
    domains = Digits5(root=tmp_path).load()
    assert same(Digits5(root=home).load(), domains)
    for domain in domains:
        assert domain.records.shape == (100, 32, 32, 3)
        assert domain.test is not None
        assert len(domain.test.labels) == 10
    third = np.random.default_rng(3).integers(0, 256, (10, 32, 32, 3), dtype=np.uint8)
    assert np.array_equal(domains[2].records[30:40], third)
    assert len(Digits5(root=tmp_path).files()) == 44


def test_a_digit_domain_that_is_there_twice_is_refused(digits: Path) -> None:
    layouts.fedbn_digits(digits / "digit_dataset/MNIST", (28, 28))
    refused(Digits5(root=digits), "mnist is in .*raw and in .*digit_dataset.*MNIST; move one away")


def cut(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda r: (r / "MNIST/raw/train-images-idx3-ubyte.gz").unlink(),
            "holds no MNIST/raw/train-images.*data: digits",
        ),
        (lambda r: cut(r / "MNIST/raw/train-images-idx3-ubyte.gz", 2000), "ubyte.gz cannot be read"),
        (
            lambda r: layouts.write(
                r / "MNIST/raw/t10k-images-idx3-ubyte.gz", b"\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x01a"
            ),
            "holds 1 values, but says 2 x 1 x 1",
        ),
        (
            lambda r: layouts.write(
                r / "MNIST/raw/t10k-images-idx3-ubyte.gz", layouts.idx_bytes(np.zeros(5))
            ),
            "begins with 00000801, not with 00000803",
        ),
        (
            lambda r: layouts.write(r / "MNIST/raw/t10k-images-idx3-ubyte.gz", b""),
            "begins with , not with 00000803",
        ),
        (
            lambda r: layouts.write(
                r / "MNIST/raw/train-labels-idx1-ubyte.gz", layouts.idx_bytes(np.arange(20))
            ),
            r"has label 10 \(record 10\); wanted are 0 to 9",
        ),
        (
            lambda r: layouts.write(
                r / "MNIST/raw/train-labels-idx1-ubyte.gz", layouts.idx_bytes(np.zeros(19))
            ),
            "has 19 labels for 20 images",
        ),
        (lambda r: cut(r / "USPS/usps.bz2", 500), "usps.bz2 cannot be read"),
        (lambda r: (r / "USPS/usps.t.bz2").write_bytes(b"BZh9"), "usps.t.bz2 cannot be read"),
        (lambda r: usps(r, "11 1:0"), r"has label 10 \(record 0\)"),
        (lambda r: usps(r, "1 257:0"), "line 1: feature 257 is not one of 1 to 256"),
        (lambda r: usps(r, "1 1:2"), "line 1: value 2.0 is not between -1 and 1"),
        (lambda r: usps(r, "1 1:nan"), "line 1: value nan is not between -1 and 1"),
        (lambda r: usps(r, "1 1-2"), "line 1: could not convert string to float"),
        (lambda r: usps(r, "one 1:0"), "line 1: 'one' is no label from 1 to 10"),
        (lambda r: usps(r, "1 1:0\n \n2 1:0"), "usps.bz2, line 2: '' is no label from 1 to 10"),
        (lambda r: usps(r, "9" * 5000 + " 1:0"), r"usps.bz2, line 1: '9{20}' is no label"),
        (lambda r: usps(r, "1 1:0" + "\n" * 2**27), "usps.bz2 has more than 134,217,728 bytes, unpacked"),
        (lambda r: (r / "USPS/usps.bz2").write_bytes(bz2.compress(b"")), "usps.bz2 holds no records"),
        (
            lambda r: layouts.write(
                r / "MNIST/raw/t10k-images-idx3-ubyte.gz", b"\0\0\x08\x03" + b"\xff" * 12 + b"a"
            ),
            "says 4294967295 x 4294967295 x 4294967295 values, not 1 to 1,073,741,824",
        ),
        (
            lambda r: layouts.write(
                r / "MNIST/raw/t10k-images-idx3-ubyte.gz",
                layouts.idx_bytes(np.zeros((10, 28, 28))) + bytes(10**7),
            ),
            "holds more than 7,840 values, but says 10 x 28 x 28",
        ),
        (
            lambda r: layouts.write(
                r / "MNIST/raw/t10k-images-idx3-ubyte.gz", layouts.idx_bytes(np.zeros((10, 28, 0)))
            ),
            "says 10 x 28 x 0 values, not 1 to",
        ),
        (
            lambda r: layouts.write(
                r / "MNIST/raw/t10k-images-idx3-ubyte.gz", layouts.idx_bytes(np.zeros((10, 30, 28)))
            ),
            r"holds images of \(28, 28\) to train on and of \(30, 28\) to test on",
        ),
        (
            lambda r: svhn(r, X=np.zeros((32, 32, 3, 2), np.uint8), y=np.array([[1.7], [1]])),
            "train_32x32.mat holds no whole numbers under 'y'",
        ),
        (
            lambda r: svhn(r, X=np.zeros((2, 2), object), y=np.array([[1], [1]])),
            "holds no X and y of SVHN .X is cell of shape",
        ),
        (lambda r: cut(r / "SVHN/train_32x32.mat", 900), "holds no X and y of SVHN"),
        (lambda r: (r / "SVHN/train_32x32.mat").write_bytes(b""), "holds no X and y of SVHN"),
        (lambda r: svhn(r, X=np.zeros((32, 32, 3, 2), np.uint8), y=np.array([[0], [1]])), "has label -1"),
        (lambda r: svhn(r, X=np.zeros((32, 32, 3, 2), np.uint8), y=np.array([[11], [1]])), "has label 11"),
        (
            lambda r: svhn(r, X=np.zeros((32, 32, 3, 2)), y=np.array([[1], [1]])),
            r"holds float64 of shape \[2, 32, 32, 3\]",
        ),
        (lambda r: svhn(r, Y=np.zeros(3)), "holds no X and y"),
        (lambda r: shutil.rmtree(r / "synthetic_digits/imgs_valid"), "holds no synthetic_digits/"),
        (
            lambda r: layouts.class_folders(r / "synthetic_digits/imgs_train", {"ten": 1}),
            "class folder 'ten'",
        ),
        (lambda r: shutil.rmtree(r), "does not exist"),
    ],
)
def test_damaged_digit_files_are_refused(digits: Path, change, message: str) -> None:
    change(digits)
    refused(Digits5(root=digits), message)


def usps(root: Path, line: str) -> None:
    (root / "USPS/usps.bz2").write_bytes(bz2.compress(f"{line}\n".encode()))


def svhn(root: Path, **arrays: np.ndarray) -> None:
    from scipy.io import savemat

    savemat(root / "SVHN/train_32x32.mat", arrays)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((np.zeros((2, 28, 28), np.uint8), np.array([0, 10])), "has label 10"),
        ((np.zeros((2, 28, 28), np.uint8), np.array([0, 1, 2])), "has 3 labels for 2 images"),
        ((np.zeros((2, 28, 28), np.float32), np.array([0, 1])), "holds float32"),
        ((np.zeros((2, 9, 9), np.uint8), np.array([0, 1])), "holds images of different sizes"),
        ([1, 2, 3], "is not a pair of images and labels"),
        ((np.zeros((2, 28, 28), np.uint8), np.array([0.9, 1.0])), "holds no whole numbers"),
        ((np.zeros((2, 28, 28), np.uint8), np.array(["3", "4"])), "holds no whole numbers"),
        ((np.zeros((2, 28, 28), np.uint8), [1.7, 2]), "holds no whole numbers"),
        ((np.zeros((2, 28, 28), np.uint8), [10**30, 2]), "holds no whole numbers"),
        ((np.zeros((2, 0, 28), np.uint8), np.array([0, 1])), r"holds uint8 of shape \[2, 0, 28\]"),
        ((np.zeros((0, 28, 28), np.uint8), np.zeros(0, int)), "holds no records"),
    ],
)
def test_odd_partitions_are_refused(tmp_path: Path, value: object, message: str) -> None:
    layouts.fedbn_digits(tmp_path / "MNIST", (28, 28))
    layouts.dump(tmp_path / "MNIST/partitions/train_part4.pkl", value)
    refused(Digits5(root=tmp_path, domains=("mnist",)), message)


def test_a_partition_that_would_run_code_is_refused(tmp_path: Path) -> None:
    layouts.fedbn_digits(tmp_path / "MNIST", (28, 28))
    layouts.dump(tmp_path / "MNIST/test.pkl", layouts.RunsCode(tmp_path / "made"))
    refused(Digits5(root=tmp_path, domains=("mnist",)), "test.pkl names .*could run code")
    assert not (tmp_path / "made").exists()
    assert pickle.loads(pickle.dumps(tmp_path)) == tmp_path  # noqa: S301, of our own making


# what the documents say


def test_the_document_shows_what_is_said_when_files_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parent.parent / "docs/folders.md").read_text(encoding="utf-8")
    with pytest.raises(InputError) as found:
        Pacs(root=Path("data")).load()
    assert str(found.value) in " ".join(text.split())


@pytest.mark.parametrize(
    "name",
    ["pacs", "office_caltech", "digits5", "fashion_mnist", "cifar10", "cifar100", "vader", "ag_news"],
)
def test_what_is_missing_is_refused_with_layout_source_and_twin(name: str, tmp_path: Path) -> None:
    text = (Path(__file__).parent.parent / "docs/folders.md").read_text(encoding="utf-8")
    assert f"`{name}`" in text
    for root, said in ((tmp_path / "none", "does not exist"), (tmp_path, f"root='{tmp_path}' ")):
        data = plug.build("privkit.data", {"name": name, "root": str(root)})
        assert isinstance(data, AbstractData)
        refused(data, rf"{said}.*; .* is read as .* \(docs/folders\.md; .*\d{{4}}.*\): .* take data: \w+")
        refused(data, r"name your folder with `privkit train CONFIG --data DIR`, or take data: \w+")


def test_only_what_debian_has_is_said_to_be_in_debian(tmp_path: Path) -> None:
    said = (
        r"put it there, on Debian run `apt install dataset-fashion-mnist`, which fills {}, name your folder"
    )
    default = FashionMnist.model_fields["root"].default
    refused(FashionMnist(root=tmp_path), said.format(re.escape(str(default))))
    with pytest.raises(InputError) as found:
        Pacs(root=tmp_path).load()
    assert "Debian" not in str(found.value)
