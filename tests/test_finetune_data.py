"""Texts of the gradient lab: CoLA, SST-5 and IMDb from folders, and what stands in for them."""

from pathlib import Path

import numpy as np
import pytest

from privkit.data._base import AbstractData
from privkit.data.acceptability import Acceptability
from privkit.data.cola import Cola
from privkit.data.editorials import Editorials
from privkit.data.imdb import Imdb
from privkit.data.sst5 import Sst5
from privkit.data.vader import Vader
from privkit.errors import InputError

COLA = 'gj04\t1\t\tThe sailors rode the breeze.\ngj04\t0\t*\tThey drank the "pub.\ncj99\t1\t\tFine.\n'
TREES = "(3 (2 It) (4 (2 's) (4 lovely)))\n(0 (2 -LRB-) (1 (2 and\\/or) (1 dull)))\n(1 bad)\n"


def few(kind: type, root: Path, **settings: object) -> AbstractData:
    return kind(root=root, clients=1, alpha=1.0, **settings)


def everything(data: AbstractData) -> tuple[list[str], list[int], list[str], list[int]]:
    """Return texts and classes that are trained on, and those that are tested on."""
    (domain,) = data.load()
    assert domain.test is not None
    train = sorted(zip(domain.records.tolist(), domain.labels.tolist(), strict=True))
    test = sorted(zip(domain.test.records.tolist(), domain.test.labels.tolist(), strict=True))
    return [t for t, _ in train], [y for _, y in train], [t for t, _ in test], [y for _, y in test]


# ---------------------------------------------------------------------- CoLA


@pytest.mark.parametrize(
    ("folder", "train", "tests"),
    [
        ("", "train.tsv", ["dev.tsv"]),
        ("CoLA", "train.tsv", ["dev.tsv"]),
        ("cola_public/raw", "in_domain_train.tsv", ["in_domain_dev.tsv", "out_of_domain_dev.tsv"]),
    ],
)
def test_cola_is_read_in_both_of_its_published_forms(folder, train, tests, tmp_path):
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / train).write_text(COLA)
    for name in tests:
        (tmp_path / folder / name).write_text(f"x\t1\t\tTested in {name}.\n")
    texts, labels, tested, right = everything(few(Cola, tmp_path))
    assert texts == ["Fine.", "The sailors rode the breeze.", 'They drank the "pub.']
    assert labels == [1, 1, 0]
    assert tested == sorted(f"Tested in {name}." for name in tests)
    assert right == [1] * len(tests)


@pytest.mark.parametrize("line", ["x\t2\t\tA.", "x\t1\tA.", "x\t1\t\t "])
def test_a_line_of_cola_that_is_none_is_refused_by_its_number(line, tmp_path):
    (tmp_path / "train.tsv").write_text(COLA + line + "\n")
    (tmp_path / "dev.tsv").write_text(COLA)
    with pytest.raises(InputError, match=r"train\.tsv, row 4: .*get it again"):
        few(Cola, tmp_path).load()


# ---------------------------------------------------------------------- SST-5


def test_sst5_is_read_from_trees(tmp_path):
    (tmp_path / "trees").mkdir()
    (tmp_path / "trees" / "train.txt").write_text(TREES)
    (tmp_path / "trees" / "dev.txt").write_text("(4 (2 So) (4 good))\n")
    texts, labels, tested, right = everything(few(Sst5, tmp_path))
    assert dict(zip(texts, labels, strict=True)) == {"It 's lovely": 3, "( and/or dull": 0, "bad": 1}
    assert (tested, right) == (["So good"], [4])


@pytest.mark.parametrize("tree", ["(5 bad)", "3 lovely", "(3 (2 It) (4 's)", "(3 )"])
def test_a_line_of_sst5_that_is_no_tree_is_refused_by_its_number(tree, tmp_path):
    (tmp_path / "train.txt").write_text(TREES + tree + "\n")
    (tmp_path / "dev.txt").write_text(TREES)
    with pytest.raises(InputError, match=r"train\.txt, line 4: .* is not a tree"):
        few(Sst5, tmp_path).load()


# ---------------------------------------------------------------------- IMDb


def reviews(root: Path, count: int) -> None:
    for side in ("neg", "pos"):
        folder = root / "aclImdb" / "train" / side
        folder.mkdir(parents=True)
        for i in range(count):
            (folder / f"{i}_3.txt").write_text(f"{side} {i}<br /><br />and more")


def test_imdb_holds_out_a_tenth_of_each_class_whatever_the_order(tmp_path):
    reviews(tmp_path, 30)
    texts, labels, tested, right = everything(few(Imdb, tmp_path))
    assert (len(texts), len(tested)) == (54, 6)
    assert sum(labels) == 27
    assert sum(right) == 3
    assert not set(texts) & set(tested)
    assert "<" not in "".join(texts)
    assert everything(few(Imdb, tmp_path / "aclImdb")) == (texts, labels, tested, right)


def test_an_empty_review_is_refused_by_its_name(tmp_path):
    reviews(tmp_path, 2)
    (tmp_path / "aclImdb" / "train" / "pos" / "1_3.txt").write_text("<br />")
    with pytest.raises(InputError, match=r"1_3\.txt holds no text"):
        few(Imdb, tmp_path).load()


@pytest.mark.parametrize(
    ("kind", "lacks"), [(Cola, r"train\.tsv"), (Sst5, r"train\.txt"), (Imdb, "train/neg")]
)
def test_a_folder_without_the_files_is_refused_with_the_way_out(kind, lacks, tmp_path):
    with pytest.raises(InputError, match=f"lacks .*{lacks}.*or take data:"):
        few(kind, tmp_path).load()


# ---------------------------------------------------------------------- what stands in


def editorials(root: Path, lines: list[str]) -> Path:
    for name in ("tweets", "movieReviewSnippets", "amazonReviewSnippets", "nytEditorialSnippets"):
        (root / f"{name}_GroundTruth.txt").write_text("\n".join(lines))
    return root


def test_passages_are_of_one_editorial_and_no_sentence_is_in_two(tmp_path):
    numbers = [(e, s) for e in range(1, 21) for s in range(1, 6)]
    lines = [f"{e}_{s}\t{1.0 if e % 2 else -0.5}\tSentence {s} of {e}." for e, s in numbers]
    texts, labels, tested, _ = everything(few(Editorials, editorials(tmp_path, lines), sentences=2))
    every = texts + tested
    assert len(every) == 40
    assert "Sentence 3 of 7. Sentence 4 of 7." in every
    assert not any("Sentence 5" in text for text in every)
    for text, label in zip(texts, labels, strict=True):
        one, other = (part.split()[-1].rstrip(".") for part in text.split(". "))
        assert one == other
        assert label == int(one) % 2


def test_a_file_that_names_no_editorials_is_refused(tmp_path):
    with pytest.raises(InputError, match="names no editorial"):
        few(Editorials, editorials(tmp_path, ["7\t1.0\tA sentence."])).load()
    with pytest.raises(InputError, match="no editorial has 6 sentences"):
        few(Editorials, editorials(tmp_path, ["1_1\t1.0\tA sentence."])).load()


def test_short_sentences_are_as_written_or_with_two_neighbours_exchanged():
    texts, labels, tested, right = everything(Acceptability(clients=1, alpha=1.0))
    written = {str(text) for domain in Vader(classes=5).load() for text in domain.records}
    every = list(zip(texts + tested, labels + right, strict=True))
    assert 0.35 < np.mean([label for _, label in every]) < 0.65
    for text, label in every:
        assert (text in written) == bool(label)
        if not label:
            words = text.split()
            swaps = [
                " ".join([*words[:i], words[i + 1], words[i], *words[i + 2 :]]) for i in range(len(words) - 1)
            ]
            originals = {" ".join(w.split()) for w in written}
            assert any(swap in originals for swap in swaps)


def test_short_sentences_are_short_and_the_same_every_time():
    one, again = (Acceptability(clients=2, alpha=1.0, most_words=6).load() for _ in range(2))
    assert all(np.array_equal(a.records, b.records) for a, b in zip(one, again, strict=True))
    assert all(len(str(text).split()) <= 6 for domain in one for text in domain.records)
