"""The stored objects: what is in them, one concept in every style, what is refused, and their export as files."""

import hashlib
import itertools
import shutil
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, WebPImagePlugin

from privkit import plug
from privkit.cli import main
from privkit.data import objects
from privkit.data._base import Domain
from privkit.data._layout_export import LAYOUTS, export
from privkit.data.objects import CLASSES, COLUMNS, DOMAINS, SMALLEST_CLASS, Objects, concepts
from privkit.errors import InputError

COUNTS = {
    "animal": 129,
    "building": 33,
    "clothing": 47,
    "face": 114,
    "food": 101,
    "person": 142,
    "vehicle": 72,
}
PIXELS = {  # first 16 digits of the sha256 of all images, at 64 and at 32 pixels a side
    "fluent-3d": ("55c58e79fa7e53cf", "c9be3480bf2caad5"),
    "noto": ("3054359bdb5b17e5", "30982b990c863260"),
    "twemoji": ("fb0271dcb3e15dac", "71682e72173d30d6"),
    "fluent-high-contrast": ("79298b4b15f28935", "cff0b2fd66855a66"),
}


@pytest.fixture(scope="module")
def everything() -> tuple[Domain, ...]:
    return Objects().load()


@pytest.fixture(scope="module")
def small() -> tuple[Domain, ...]:
    return Objects(side=32).load()


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        assert image.mode == "RGB"
        return np.array(image)


def test_default_is_all_four_styles_in_colour(everything):
    assert [domain.name for domain in everything] == list(DOMAINS) == list(PIXELS)
    for domain in everything:
        assert domain.records.shape == (638, 64, 64, 3)
        assert domain.records.dtype == np.uint8
        assert domain.labels.dtype == np.int64


def test_every_domain_has_the_same_counts_per_class(everything):
    assert tuple(COUNTS) == CLASSES
    assert Objects().num_classes == len(CLASSES)
    assert min(COUNTS.values()) == SMALLEST_CLASS
    for domain in everything:
        assert np.bincount(domain.labels).tolist() == list(COUNTS.values())


def test_load_gives_the_published_pixels(everything, small):
    for row, found in enumerate((everything, small)):
        drawn = {d.name: hashlib.sha256(d.records.tobytes()).hexdigest()[:16] for d in found}
        assert drawn == {name: hashes[row] for name, hashes in PIXELS.items()}


def test_no_image_occurs_twice(everything, small):
    for found in (everything, small):
        images = np.concatenate([domain.records.reshape(638, -1) for domain in found])
        assert len(np.unique(images, axis=0)) == len(images) == 2552


def test_no_two_drawings_of_a_style_are_nearly_the_same(everything):
    for domain in everything:
        pixels = domain.records.reshape(638, -1).astype(np.float64)
        squares = (pixels**2).sum(1)
        gaps = np.sqrt((squares[:, None] + squares - 2 * pixels @ pixels.T) / pixels.shape[1])
        assert gaps[~np.eye(638, dtype=bool)].min() >= 2


def test_the_ground_is_white(everything):
    for domain in everything:
        assert (domain.records == 255).all(axis=-1).mean() > 0.2
        assert domain.records.min() < 30


def test_the_fourth_style_is_black_and_white_and_the_others_are_not(everything):
    for domain in everything:
        grey = (np.ptp(domain.records, axis=-1) == 0).mean()
        assert (grey == 1) == (domain.name == "fluent-high-contrast")


def test_a_thing_is_one_concept_in_every_domain(everything):
    for domain in everything:
        assert np.array_equal(domain.things, np.arange(638))
        assert [CLASSES[label] for label in domain.labels] == [concept.kind for concept in concepts()]


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(range(4), 2)))
def test_drawings_of_one_concept_are_more_alike_than_others_of_its_class(small, one, other):
    """By their outlines: rows in another order, even within classes, would give a half."""
    outlines = []
    for domain in (small[one], small[other]):
        ink = (domain.records.mean(axis=-1) < 247).reshape(638, 8, 4, 8, 4).mean(axis=(2, 4)).reshape(638, -1)
        ink -= ink.mean(axis=1, keepdims=True)
        outlines.append(ink / np.linalg.norm(ink, axis=1, keepdims=True))
    alike = outlines[0] @ outlines[1].T
    rivals = (small[0].labels[:, None] == small[0].labels) & ~np.eye(638, dtype=bool)
    better = ((alike > np.diag(alike)[:, None]) & rivals).sum(axis=1) / rivals.sum(axis=1)
    assert better.mean() < 0.4


def test_concepts_are_emoji_each_once_under_their_own_name():
    emoji = ["".join(chr(int(code, 16)) for code in concept.hexcode.split("-")) for concept in concepts()]
    assert len(set(emoji)) == len({concept.name for concept in concepts()}) == 638
    by_emoji = dict(zip(emoji, concepts(), strict=True))
    assert by_emoji["🐶"] == objects.Concept("animal", "1F436", "dog face")
    assert by_emoji["🍕"].kind == "food"
    assert by_emoji["🚲"].kind == "vehicle"
    same = sum(len(e) == 1 and unicodedata.name(e, "").lower() == c.name for e, c in by_emoji.items())
    assert same >= 400  # the others have several code points, or a newer name than Unicode's first


def test_a_half_sized_image_is_the_mean_of_four_pixels(everything, small):
    for domain, half in zip(everything, small, strict=True):
        means = domain.records.reshape(638, 32, 2, 32, 2, 3).mean(axis=(2, 4))
        assert np.abs(half.records - means).max() <= 0.5


def test_images_are_the_tiles_of_the_stored_sheet(everything):
    sheet = pixels(objects.FOLDER / "noto.webp")
    for thing in (0, 25, 26, 637):
        top, left = 64 * (thing // COLUMNS), 64 * (thing % COLUMNS)
        assert np.array_equal(everything[1].records[thing], sheet[top : top + 64, left : left + 64])


def test_fewer_per_class_are_nested_and_the_same_concepts_everywhere(everything):
    few, more = (Objects(per_class=n).load() for n in (5, 33))
    for small, large, whole in zip(few, more, everything, strict=True):
        assert np.bincount(small.labels).tolist() == [5] * 7
        assert np.bincount(large.labels).tolist() == [33] * 7
        assert small.things is not None
        assert large.things is not None
        assert np.isin(small.things, large.things).all()
        assert np.array_equal(small.records, whole.records[small.things])
        assert np.array_equal(small.labels, whole.labels[small.things])
        first = [np.flatnonzero(whole.labels == label)[:5] for label in range(7)]
        assert np.array_equal(small.things, np.sort(np.concatenate(first)))


def test_domains_come_in_the_order_they_are_named(everything):
    sketch, photo = Objects(domains=("fluent-high-contrast", "fluent-3d")).load()
    assert np.array_equal(sketch.records, everything[3].records)
    assert np.array_equal(photo.records, everything[0].records)


@pytest.mark.parametrize("name", ["twemoji.webp", "concepts.csv"])
def test_a_damaged_file_is_refused(name, tmp_path, monkeypatch):
    folder = shutil.copytree(objects.FOLDER, tmp_path / "stored")
    content = bytearray((folder / name).read_bytes())
    content[1000] ^= 1
    (folder / name).write_bytes(content)
    monkeypatch.setattr(objects, "FOLDER", folder)
    with pytest.raises(InputError, match=rf"{name} is damaged .* install privkit again"):
        Objects().load()


def test_a_missing_file_is_refused(tmp_path, monkeypatch):
    folder = shutil.copytree(objects.FOLDER, tmp_path / "stored")
    (folder / "twemoji.webp").unlink()
    monkeypatch.setattr(objects, "FOLDER", folder)
    assert len(Objects(domains=("noto",)).load()) == 1
    with pytest.raises(InputError, match=r"twemoji\.webp is missing; install privkit again"):
        Objects().load()


def test_a_pillow_without_webp_is_refused(monkeypatch):
    monkeypatch.setattr(WebPImagePlugin, "SUPPORTED", False)
    with pytest.warns(UserWarning, match="WEBP"), pytest.raises(InputError, match="reads no WebP"):
        Objects().load()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"domains": ["noto", "openmoji"]}, r"domains\.1='openmoji': input should be 'fluent-3d', 'noto'"),
        ({"domains": ["noto", "noto"]}, "a domain is named twice"),
        ({"domains": []}, "at least 1 item"),
        ({"per_class": 0}, "greater than or equal to 1"),
        ({"per_class": 34}, "building holds 33 concepts; ask for at most 33, or null for all"),
        ({"per_class": True}, "valid integer"),
        ({"side": 48}, "input should be 32 or 64"),
        ({"per_clas": 5}, "Did you mean per_class"),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(settings, message):
    with pytest.raises(InputError, match=message):
        plug.build("privkit.data", {"name": "objects", **settings})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_exported_files_are_the_images_under_their_class_and_number(layout, tmp_path):
    folder = export(Objects(per_class=6, side=32), layout=layout, out=tmp_path / "new")
    drawn = LAYOUTS[layout].drawn
    loaded = Objects(domains=tuple(drawn.values()), per_class=6, side=32).load()
    assert len(list(folder.glob("*/*/*.png"))) == 4 * 7 * 6
    for name, domain in zip(drawn, loaded, strict=True):
        assert domain.things is not None
        for record, label, thing in zip(domain.records, domain.labels, domain.things, strict=True):
            path = folder / name / CLASSES[label] / f"pic_{thing:03}.png"
            assert np.array_equal(pixels(path), record)
    about = (folder / "README.txt").read_text()
    assert all(f"{name}: {style}\n" in about for name, style in drawn.items())


def test_the_layouts_are_those_of_the_public_data_sets():
    assert LAYOUTS["pacs"].folder == "PACS"
    assert list(LAYOUTS["pacs"].drawn) == ["photo", "art_painting", "cartoon", "sketch"]
    assert LAYOUTS["office-caltech"].folder == "Office-Caltech-10"
    assert list(LAYOUTS["office-caltech"].drawn) == ["amazon", "caltech", "dslr", "webcam"]
    for layout in LAYOUTS.values():
        assert sorted(layout.drawn.values()) == sorted(DOMAINS)


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path):
    kept = tmp_path / "PACS" / "photo" / "mine.png"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"mine")
    with pytest.raises(InputError, match=r"PACS is there already and not empty; remove it"):
        export(Objects(per_class=1), layout="pacs", out=tmp_path)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [kept]
    with pytest.raises(InputError, match=r"mine\.png is a file; give a folder"):
        export(Objects(per_class=1), layout="pacs", out=kept)


def test_a_killed_export_leaves_no_data_set_and_the_next_one_is_whole(tmp_path, monkeypatch):
    (tmp_path / "PACS").mkdir()  # empty: may be filled
    save = Image.Image.save
    written = itertools.count()

    def die(image: Image.Image, path: Path) -> None:
        if next(written) == 10:
            raise KeyboardInterrupt
        save(image, path)

    monkeypatch.setattr(Image.Image, "save", die)
    with pytest.raises(KeyboardInterrupt):
        export(Objects(per_class=1), layout="pacs", out=tmp_path)
    assert not list((tmp_path / "PACS").iterdir())
    monkeypatch.undo()
    export(Objects(per_class=2), layout="pacs", out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["PACS"]
    assert len(list(tmp_path.glob("PACS/*/*/*.png"))) == 4 * 7 * 2


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["privkit", "export-data", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_the_command_writes_and_refuses(tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, "pacs", "--out", tmp_path, "--per-class", 2, "--side", 32) == 0
    assert "PACS: 56 pictures, 4 domains, 7 classes." in capsys.readouterr().out
    assert pixels(next(tmp_path.glob("PACS/sketch/animal/pic_*.png"))).shape == (32, 32, 3)
    assert run(monkeypatch, "pacs", "--out", tmp_path) == 2
    assert "not empty" in capsys.readouterr().err
    assert run(monkeypatch, "pac", "--out", tmp_path) == 2
    assert "known are pacs, office-caltech. Did you mean pacs?" in capsys.readouterr().err


def test_every_source_has_its_notice():
    notice = (Path(__file__).parent.parent / "NOTICE").read_text(encoding="utf-8")
    for name in (*(f"{style}.webp" for style in DOMAINS), "concepts.csv"):
        assert f"privkit/data/_objects/{name}" in notice
