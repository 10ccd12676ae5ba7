"""``privkit scores``: what it prints, in which format, and how it ends."""

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attacks.statistics.multiple import holm
from attacks.statistics.paired_area import paired_difference
from privkit.cli import main

FEW = Path(__file__).parent / "projres"
BERT, LLAMA = FEW / "mia_bert_IMDB_results_16.json", FEW / "mia_llama_cola_results_16.json"


class Shell:
    """Runs ``privkit scores`` as a user would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys
        monkeypatch.setenv("COLUMNS", "200")

    def __call__(self, *words: object) -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "argv", ["privkit", "scores", *map(str, words)])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = self.capsys.readouterr()
        return int(stop.value.code or 0), out, err

    def json(self, *words: object) -> dict[str, Any]:
        code, out, err = self(*words, "--json")
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


def test_the_terminal_shows_attacks_and_names_what_is_within_noise(shell: Shell) -> None:
    code, out, err = shell(BERT, LLAMA)
    assert (code, err) == (0, "")
    assert re.search(
        r"bert imdb +ProjRes +lower +100/100 +0\.8072 \[0\.\d+, 0\.\d+\] +0\.600 .* 1/100 +0\.020", out
    )
    assert re.search(r"llama cola +FTA +higher +100/100 +0\.4383", out)
    said = " ".join(out.split())
    assert "bert imdb: 14 of 28 differences between attacks are within noise: ProjRes and FedMIA;" in said
    assert "GradDiff and FedMIA, ScoreRatio" in said.partition("llama cola: ")[2]
    assert "holds for the one trained model" in said
    assert "llama cola ProjRes: scores of members and non-members do not overlap" in said


def test_what_is_within_noise_is_what_holm_does_not_reject(shell: Shell) -> None:
    lists = json.loads(BERT.read_text(encoding="utf-8"))
    signs = {"P_MIA": -1, "Fed_loss": -1, "Cosine": 1, "FTA": 1}
    (file,) = shell.json(BERT)["files"]
    assert len(file["pairs"]) == 28
    adjusted = holm(
        {f"{p['first']} {p['second']}": p["difference"]["p_value"] for p in file["pairs"]}
    ).adjusted
    for pair in file["pairs"]:
        assert pair["adjusted_p"] == adjusted[f"{pair['first']} {pair['second']}"]
        assert pair["within_noise"] is (pair["adjusted_p"] > 0.05)
        assert pair["difference"]["value"] >= 0
    names = {"ProjRes": "P_MIA", "FedLoss": "Fed_loss", "Cosine": "Cosine", "FTA": "FTA"}
    checked = [p for p in file["pairs"] if {p["first"], p["second"]} <= set(names)]
    for pair in checked:
        classes = []
        for name in (pair["first"], pair["second"]):
            key, end = names[name], "_sample_res" if name == "ProjRes" else "_sample"
            classes.append(
                [signs[key] * np.array(lists[f"{key}_{kind}{end}"]) for kind in ("positive", "negative")]
            )
        one, other = (tuple(part) for part in classes)
        expected = paired_difference(one, other, clusters=(range(100), range(100)))
        assert pair["difference"] == expected.to_dict()
    assert len(checked) == 6


def test_unpaired_is_said_and_sees_less(shell: Shell) -> None:
    paired, apart = (shell.json(BERT, *words)["files"][0] for words in ((), ("--unpaired",)))
    assert (paired["same_candidates"], apart["same_candidates"]) == ("stated", "different")
    found = [sum(pair["within_noise"] for pair in file["pairs"]) for file in (paired, apart)]
    assert found[0] < found[1]
    assert "unpaired" in shell(BERT, "--unpaired")[1]


def test_an_assumed_pairing_is_said(shell: Shell, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    attacks = [
        {"attack": name, "member_has": "higher", "members": rng.normal(1, 1, 30).tolist(),
         "non_members": rng.normal(size=40).tolist()}
        for name in ("one", "two")
    ]  # fmt: skip
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"privkit_scores": 1, "attacks": attacks}), encoding="utf-8")
    code, out, _ = shell(path)
    assert code == 0
    said = " ".join(out.split())
    assert "on the assumption that all attacks scored the same candidates in the same order" in said
    assert "n/a" in out  # 40 non-members cannot show 1 %
    assert "40 non-members cannot show a false-positive rate of 0.01" in said
    assert path.as_posix() in out


def test_csv_keeps_full_precision_and_one_row_per_attack(shell: Shell) -> None:
    code, out, _ = shell(BERT, LLAMA, "--format", "csv")
    assert code == 0
    found = list(csv.DictReader(io.StringIO(out)))
    assert len(found) == 16
    assert float(found[0]["auc"]) == pytest.approx(0.8072)
    assert found[0]["threshold"] != ""
    pairs = list(csv.DictReader(io.StringIO(shell(BERT, LLAMA, "--format", "csv", "--pairs")[1])))
    assert len(pairs) == 56
    assert float(pairs[0]["adjusted_p"]) > 0


@pytest.mark.parametrize(
    ("format", "start"), [("md", "| scores | attack |"), ("tex", r"\begin{tabular}{lll")]
)
def test_papers_get_their_formats(shell: Shell, format: str, start: str) -> None:
    code, out, _ = shell(BERT, "--format", format)
    assert code == 0
    assert out.startswith(start)
    assert "within noise" in out


def test_a_pattern_is_expanded_and_a_file_counts_once(shell: Shell) -> None:
    found = shell.json(FEW / "*.json", BERT)["files"]
    assert [Path(file["file"]).name for file in found] == [BERT.name, LLAMA.name]


def test_files_of_one_model_and_data_set_are_told_apart_by_their_paths(shell: Shell, tmp_path: Path) -> None:
    copy = tmp_path / BERT.name
    copy.write_bytes(BERT.read_bytes())
    rows = list(csv.DictReader(io.StringIO(shell(BERT, copy, "--format", "csv")[1])))
    assert {row["scores"] for row in rows} == {BERT.as_posix(), copy.as_posix()}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("absent.json",), "absent.json does not exist"),
        ((BERT, FEW / "recomputed.csv"), "recomputed.csv: column 'member_has' is missing"),
        ((BERT, "--json", "--pairs"), "--json prints attacks and pairs alike"),
        ((BERT, "--json", "--format", "md"), "--json prints attacks and pairs alike"),
    ],
)
def test_bad_input_ends_with_code_2_and_one_sentence(
    shell: Shell, words: tuple[object, ...], sentence: str
) -> None:
    code, out, err = shell(*words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_json_can_be_read_without_nan(shell: Shell) -> None:
    found = shell.json(BERT, LLAMA)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert [file["independent_units"] for file in found["files"]] == ["releases", "releases"]
    assert all("within noise" in file["within_noise"] for file in found["files"])


def test_attacks_on_other_numbers_of_candidates_are_compared_unpaired_and_named(
    shell: Shell, tmp_path: Path
) -> None:
    sizes = {"one": 2, "two": 2, "three": 3}
    attacks = [
        {"attack": name, "member_has": "higher", "members": [1, 2], "non_members": [0, 3, 1.5][:size]}
        for name, size in sizes.items()
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"privkit_scores": 1, "attacks": attacks}), encoding="utf-8")
    said = " ".join(shell(path)[1].split())
    assert "unpaired, because they scored different numbers of candidates or releases: " in said
    assert said.count("and three") + said.count("three and") >= 2
    (file,) = shell.json(path)["files"]
    assert {(p["first"], p["second"]): p["paired"] for p in file["pairs"]}["one", "two"]


def test_a_narrow_terminal_keeps_the_rates(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = shell(LLAMA)[1]
    assert re.search(r"llama cola +GradDiff +0\.5687 \[0\.491, 0\.643\] +0\.010 \[0\.000, 0\.054\]", out)
    assert "not shown, for want of width" in out
