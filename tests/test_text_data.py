"""Labelled sentences: the stored sample, the published files in every form, and AG's news."""

import csv
import gzip
import io
import tarfile
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privkit import plug
from privkit.data import vader
from privkit.data._base import AbstractData
from privkit.data._skew import Empty
from privkit.data._valence import ARCHIVE, FILES
from privkit.data.ag_news import AgNews
from privkit.data.vader import SCALES, Vader
from privkit.errors import InputError

RATINGS = (-3.5, -2.0, -1.0, -0.75, -0.5, -0.1, 0.5, 0.6, 0.75, 1.5, 2.0, 3.0)


def refused(data: AbstractData, message: str) -> None:
    with pytest.raises(InputError, match=message):
        data.load()


# the stored sample


@pytest.mark.parametrize(("classes", "counts"), [(5, [40] * 5), (3, [80, 40, 80])])
def test_the_sample_holds_200_sentences_of_each_domain(classes: Literal[3, 5], counts: list[int]) -> None:
    data = Vader(classes=classes)
    domains = data.load()
    assert [domain.name for domain in domains] == ["tweets", "movie", "amazon", "nyt"]
    assert data.num_classes == classes
    for domain in domains:
        assert domain.records.shape == (200,)
        assert domain.records.dtype.kind == "U"
        assert np.bincount(domain.labels).tolist() == counts
        assert domain.test is None


def test_two_classes_leave_out_ratings_near_0() -> None:
    domains = Vader().load()
    assert [np.bincount(domain.labels).tolist() for domain in domains] == [
        [81, 91],
        [88, 85],
        [83, 84],
        [83, 84],
    ]


def test_no_sentence_of_the_sample_occurs_twice_or_names_an_account() -> None:
    texts = np.concatenate([domain.records for domain in Vader(classes=5).load()])
    assert len(set(texts)) == len(texts) == 800
    assert not any("@" in text.replace("@anonymous", "") or "http" in text for text in texts)


def test_a_damaged_sample_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in vader.DOMAINS:
        (tmp_path / f"{name}.txt").write_bytes((vader.FOLDER / f"{name}.txt").read_bytes() + b" ")
    monkeypatch.setattr(vader, "FOLDER", tmp_path)
    refused(Vader(), r"tweets\.txt is damaged .* install privkit again")


@given(st.floats(-4, 4))
def test_classes_are_cut_where_the_edges_say(rating: float) -> None:
    def of(classes: int) -> int:
        from privkit.data._valence import binned

        return int(binned(np.array([rating]), SCALES[classes].edges)[0])

    five = 0 if rating < -2 else 1 if rating < -0.75 else 2 if rating < 0.75 else 3 if rating < 2 else 4
    assert of(5) == five
    assert of(3) == (five > 1) + (five > 2)
    assert of(2) == (rating >= 0)
    assert SCALES[2].clear(np.array([rating]))[0] == (abs(rating) > 0.5)


# the published files


def published(domains: dict[str, list[tuple[float, str]]]) -> dict[str, bytes]:
    """Return the four files as published: tabs, carriage returns, no line break at the end."""
    return {
        FILES[name]: "\r\n".join(
            f"{i + 1}\t{rating:.12g}\t{text}" for i, (rating, text) in enumerate(rows)
        ).encode()
        for name, rows in domains.items()
    }


def sentences() -> dict[str, list[tuple[float, str]]]:
    return {name: [(r, f"{name} says {r} - é") for r in RATINGS] for name in FILES}


def archive(files: dict[str, bytes], folder: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as made:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def files() -> dict[str, bytes]:
    return published(sentences())


def laid_out(root: Path, files: dict[str, bytes], form: str) -> Path:
    """Write the files in one of the forms that people have them in; return what to give as root."""
    inner = archive(files | {"_README_.txt": b"read me"}, "hutto_ICWSM_2014")
    root.mkdir(parents=True, exist_ok=True)
    if form in ("folder", "unpacked"):
        folder = root if form == "folder" else root / "hutto_ICWSM_2014"
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return root
    if form == "source package":
        sdist = archive({"setup.py": b"", f"additional_resources/{ARCHIVE}": inner}, "vaderSentiment-3.3.2")
        (root / "vaderSentiment-3.3.2.tar.gz").write_bytes(sdist)
        return root / "vaderSentiment-3.3.2.tar.gz"
    (root / ARCHIVE).write_bytes(inner)
    return root / ARCHIVE if form == "archive" else root


@pytest.mark.parametrize("form", ["folder", "unpacked", "archive", "folder with archive", "source package"])
def test_the_published_files_are_read_in_every_form(
    tmp_path: Path, files: dict[str, bytes], form: str
) -> None:
    data = Vader(root=laid_out(tmp_path / "x", files, form), classes=5, domains=("nyt", "tweets"))
    nyt, tweets = data.load()
    assert (nyt.name, tweets.name) == ("nyt", "tweets")
    assert nyt.records.tolist() == [f"nyt says {r} - é" for r in RATINGS]
    assert nyt.labels.tolist() == [0, 1, 1, 2, 2, 2, 2, 2, 3, 3, 4, 4]
    (binary,) = Vader(root=data.root, domains=("nyt",)).load()
    assert binary.labels.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1]


def test_a_sentence_that_occurs_twice_is_taken_once(tmp_path: Path) -> None:
    rows = sentences()
    rows["movie"] += [(3.0, "movie says -3.5 - é"), (1.0, "tweets says 3.0 - é ")]
    laid_out(tmp_path, published(rows), "folder")
    alone, together = Vader(root=tmp_path, classes=5, domains=("movie",)), Vader(root=tmp_path, classes=5)
    for data, place in ((alone, 0), (together, 1)):
        movie = data.load()[place]
        assert movie.records.tolist() == [f"movie says {r} - é" for r in RATINGS]
        assert movie.labels[0] == 0


def test_a_cap_chooses_by_text_in_order(tmp_path: Path, files: dict[str, bytes]) -> None:
    laid_out(tmp_path, files, "folder")
    (whole,) = Vader(root=tmp_path, classes=3, domains=("nyt",)).load()
    nested: set[str] = set()
    for size in (1, 5, 11, 100):
        (part,) = Vader(root=tmp_path, classes=3, domains=("nyt",), per_domain=size).load()
        assert len(part.labels) == min(size, 12)
        assert nested <= set(part.records)
        places = [whole.records.tolist().index(text) for text in part.records]
        assert places == sorted(places)
        assert np.array_equal(whole.labels[places], part.labels)
        nested = set(part.records)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "nyt",
            b"1\t0.4\tfine\r\n2\tsad\tnot a number",
            "nyt, line 2: .* is not a number, a rating and a sentence",
        ),
        ("nyt", b"1\t0.4", "nyt, line 1: .* is not a number, a rating and a sentence"),
        ("nyt", b"1\t4.5\ttoo much", "nyt, line 1: rating 4.5 is not between -4 and 4"),
        ("nyt", b"1\tnan\tnothing", "nyt, line 1: rating nan is not between"),
        ("nyt", b"1\t0.4\t\xff", "nyt is no UTF-8"),
        ("nyt", b"", "domain nyt has no sentence of 2 classes; leave it out of domains"),
    ],
)
def test_a_damaged_file_is_refused(
    tmp_path: Path, files: dict[str, bytes], name: str, content: bytes, message: str
) -> None:
    laid_out(tmp_path, files | {FILES[name]: content}, "folder")
    refused(Vader(root=tmp_path), message)


def test_what_is_missing_is_refused_with_the_way_out(tmp_path: Path, files: dict[str, bytes]) -> None:
    refused(
        Vader(root=tmp_path / "none"),
        "does not exist; the ground truth of VADER is read as .*vader without root",
    )
    refused(Vader(root=tmp_path), "lacks one of tweets_GroundTruth.txt, .*vaderSentiment 3.3.2")
    (tmp_path / "x.tar.gz").write_bytes(archive({FILES["nyt"]: files[FILES["nyt"]]}, "x"))
    refused(Vader(root=tmp_path / "x.tar.gz"), "holds no tweets_GroundTruth.txt; give the source package")
    for content in (b"no archive", gzip.compress(b"no archive"), archive(files, "x")[:200]):
        (tmp_path / "x.tar.gz").write_bytes(content)
        refused(Vader(root=tmp_path / "x.tar.gz"), "x.tar.gz is no archive that can be read")


def test_an_archive_holds_no_more_than_is_published(tmp_path: Path, files: dict[str, bytes]) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(gzip.compress(bytes(2**28 + 1), 1))
    refused(Vader(root=path), "x.tar.gz is no archive .*more than 268,435,456 bytes")
    once = archive({ARCHIVE: archive(files, "x")}, "x")
    path.write_bytes(once)
    assert len(Vader(root=path).load()) == 4
    path.write_bytes(archive({ARCHIVE: once}, "x"))  # an archive in an archive in an archive
    refused(Vader(root=path), "holds no tweets_GroundTruth.txt")


def test_a_manifest_pins_the_files_and_needs_some(tmp_path: Path, files: dict[str, bytes]) -> None:
    laid_out(tmp_path, files, "folder")
    Vader(root=tmp_path).write_manifest(tmp_path / "kept")
    data = Vader(root=tmp_path, manifest=tmp_path / "kept")
    assert len(data.load()) == 4
    (tmp_path / FILES["amazon"]).write_bytes(files[FILES["amazon"]] + b" ")
    refused(data, r"1 differ \(amazonReviewSnippets_GroundTruth.txt\)")
    with pytest.raises(InputError, match="a manifest lists files of yours; give root"):
        plug.build("privkit.data", {"name": "vader", "manifest": "kept"})


# sentences over clients


def test_with_alpha_domains_are_pooled_and_all_clients_tested_alike() -> None:
    data = Vader(classes=5, alpha=1.0, clients=6, test_per_class=30)
    domains, again = data.load(), data.load()
    assert [domain.name for domain in domains] == [f"client-{i:02}" for i in range(6)]
    test = domains[0].test
    assert test is not None
    assert all(domain.test is test for domain in domains)
    assert np.bincount(test.labels).tolist() == [30] * 5
    everything = {t: y for d in Vader(classes=5).load() for t, y in zip(d.records, d.labels, strict=True)}
    found = [(t, y) for part in (*domains, test) for t, y in zip(part.records, part.labels, strict=True)]
    assert len(found) == 800
    assert dict(found) == everything
    assert all(np.array_equal(a.records, b.records) for a, b in zip(domains, again, strict=True))
    other = Vader(classes=5, alpha=1.0, clients=6, test_per_class=30, partition_seed=1).load()[0].test
    assert other is not None
    assert np.array_equal(other.records, test.records)


def test_at_most_half_of_a_class_is_tested_on() -> None:
    test = Vader(classes=5, alpha=0, clients=2, test_per_class=1000).load()[0].test
    assert test is not None
    assert np.bincount(test.labels).tolist() == [80] * 5


def test_clients_without_sentences_are_refused_or_dropped() -> None:
    refused(Vader(alpha=0.3), r"client-03 of 20 clients got none of 479 records .*empty: drop")
    domains = Vader(alpha=0.3, empty=Empty.DROP).load()
    assert [domain.name for domain in domains] == [f"client-{i:02}" for i in range(20) if i != 3]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"classes": 4}, "should be 2, 3 or 5"),
        ({"domains": ["movie", "movie"]}, "named twice"),
        ({"domains": ["film"]}, "should be 'tweets', 'movie', 'amazon' or 'nyt'"),
        ({"alpha": -1}, "greater than or equal to 0"),
        ({"per_domain": 0}, "greater than or equal to 1"),
    ],
)
def test_wrong_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plug.build("privkit.data", {"name": "vader", **settings})


def test_settings_come_back() -> None:
    data = plug.build("privkit.data", {"name": "vader", "alpha": 1, "classes": 3})
    assert plug.build("privkit.data", data.settings()) == data


# AG's news


def news(folder: Path, *, train: int = 40, test: int = 8, header: bool = False) -> Path:
    """Write the two files as published: everything quoted, quotes doubled, line breaks as backslashes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", train), ("test", test)):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
            if header:
                rows.writerow(["Class Index", "Title", "Description"])
            for i in range(count):
                rows.writerow([i % 4 + 1, f'{name} "{i}", é', f"Reuters - one\\two, #36;{i}  "])
    return folder


@pytest.mark.parametrize(("inside", "header"), [(".", False), ("ag_news_csv", True), ("AG_NEWS", False)])
def test_ag_news_is_title_and_description(tmp_path: Path, inside: str, header: bool) -> None:
    news(tmp_path / inside, header=header)
    data = AgNews(root=tmp_path, clients=1)
    (only,) = data.load()
    assert data.num_classes == 4
    assert only.labels.tolist() == [0, 1, 2, 3] * 10
    assert only.records[5] == 'train "5", é Reuters - one two, #36;5'
    assert only.test is not None
    assert only.test.records[0] == 'test "0", é Reuters - one two, #36;0'


def test_ag_news_is_shared_out_cut_and_capped(tmp_path: Path) -> None:
    news(tmp_path, train=400)
    domains = AgNews(root=tmp_path, clients=5, alpha=5.0, per_class=50, test_per_class=1, chars=9).load()
    assert sum(len(domain.labels) for domain in domains) == 200
    assert domains[0].test is not None
    assert domains[0].test.labels.tolist() == [0, 1, 2, 3]
    assert {len(text) for domain in domains for text in domain.records} == {9}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('"5","a","b"\n', r"train.csv, row 1: \['5', 'a', 'b'\] is not class 1 to 4, title and description"),
        ('"1","a","b"\n"1","a"\n', "train.csv, row 2: .* is not class 1 to 4"),
        ('"1","a","b', "train.csv cannot be read"),
        ("", "train.csv holds no text"),
        ('"Class Index","Title","Description"\n', "train.csv holds no text"),
    ],
)
def test_odd_news_are_refused(tmp_path: Path, content: str, message: str) -> None:
    news(tmp_path)
    (tmp_path / "train.csv").write_text(content)
    refused(AgNews(root=tmp_path), message)


def test_missing_or_undecodable_news_are_refused(tmp_path: Path) -> None:
    refused(AgNews(root=tmp_path), "lacks train.csv or test.csv; AG's news is read as .*Zhang.*data: vader")
    news(tmp_path)
    (tmp_path / "test.csv").write_bytes(b'"1","a","\xff"\n')
    refused(AgNews(root=tmp_path), "test.csv cannot be read")
