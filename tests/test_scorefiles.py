"""Files of scores: every format reads to the same thing, and what is wrong in one is said in a sentence."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from attacks.statistics.auc import auc
from privkit.errors import InputError
from privkit.scorefiles import _open
from privkit.scorefiles._base import Direction, Pairing
from privkit.scorefiles.projres import ATTACKS
from reports.scores_judged import JudgedFile, judge

FEW = Path(__file__).parent / "projres"
SHARED = Path(__file__).parents[2] / "shared"
ALL, EXPECTED = SHARED / "scores" / "projres", SHARED / "paper" / "paper_projres_section42_auc_recomputed.csv"
FILES = sorted(FEW.glob("*.json"))
PUBLISHED = [*FILES, *sorted(ALL.glob("*.json"))]


def judged(path: Path, **changes: Any) -> JudgedFile:
    return judge(path.as_posix(), *_open.read(path), **changes)


def rows(path: Path) -> dict[tuple[str, ...], dict[str, str]]:
    with path.open(encoding="utf-8") as text:
        return {(row["model"], row["dataset"], row["attack"]): row for row in csv.DictReader(text)}


def flat(value: Any) -> list[Any]:
    """Return every number and text in nested values, in order; only the last bits depend on the order of rows."""
    if isinstance(value, dict | list):
        return [
            leaf for part in (value.values() if isinstance(value, dict) else value) for leaf in flat(part)
        ]
    return [value]


def own(attacks: Any = None, **changes: Any) -> dict[str, Any]:
    loss = {"attack": "loss", "member_has": "lower", "members": [0.1, 0.4], "non_members": [0.3, 0.9, 0.5]}
    return {"privkit_scores": 1, "attacks": [loss] if attacks is None else attacks} | changes


def written(folder: Path, content: Any, name: str = "scores.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_published_files_give_the_recomputed_numbers(path: Path) -> None:
    expected = rows(FEW / "recomputed.csv" if path in FILES else EXPECTED)
    found = judged(path)
    for one in found.attacks:
        row = expected[str(found.evaluation.model), str(found.evaluation.data), one.attack]
        assert one.auc.value == pytest.approx(float(row["auc"]), abs=0.5e-4 + 1e-9)
        assert one.balanced_accuracy == pytest.approx(float(row["best_balanced_accuracy"]), abs=0.5e-4 + 1e-9)
        assert one.tpr.estimate.value == pytest.approx(float(row["tpr_at_1pct_fpr"]), abs=1e-9)
        assert [one.auc.n_members, one.auc.n_non_members] == [int(row["n_member"]), int(row["n_nonmember"])]
        assert one.auc.low is not None
        assert one.auc.high is not None
        assert one.auc.value is not None
        assert one.auc.low <= one.auc.value <= one.auc.high
    assert {one.attack for one in found.attacks} == {published.attack for published in ATTACKS.values()}


@pytest.mark.skipif(not ALL.exists(), reason="the published files are not beside this checkout")
def test_the_two_files_here_hold_the_published_scores() -> None:
    for path in FILES:
        published = json.loads((ALL / path.name).read_text(encoding="utf-8"))
        here = json.loads(path.read_text(encoding="utf-8"))
        assert here == {key: value for key, value in published.items() if not key.endswith("_use")}
        assert rows(FEW / "recomputed.csv").items() <= rows(EXPECTED).items()


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_entry_i_of_every_list_is_the_same_candidate(path: Path) -> None:
    """The ratio is (after + 1e-4) / (before + 1e-4), the difference after - before: float32, rounding aside."""
    lists = json.loads(path.read_text(encoding="utf-8"))
    for sample in ("positive", "negative"):
        after, apart, ratio = (
            np.array(lists[f"{key}_{sample}_sample"]) for key in ("Fed_loss", "Score_diff", "Score_Ratio")
        )
        before = after - apart
        rounding = 4 * 2.0**-23 * (np.abs(after) + np.abs(apart) + np.abs(before))

        def fitting(ratio, after=after, before=before, rounding=rounding):
            low = (after + 1e-4) / (before + 1e-4 + rounding)
            high = (after + 1e-4) / np.maximum(before + 1e-4 - rounding, 1e-12)
            return (ratio >= low * (1 - 1e-6)) & (ratio <= high * (1 + 1e-6))

        assert fitting(ratio).all()
        assert fitting(np.roll(ratio, 1)).mean() < 0.2


def test_a_flipped_direction_mirrors_the_auc_and_is_suspect(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    members, others = rng.normal(1, 1, 100).tolist(), rng.normal(0, 1, 100).tolist()
    both = {
        way: judged(written(tmp_path, own([{"attack": "a", "member_has": way, "members": members,
                                            "non_members": others}]), f"{way}.json")).attacks[0].auc
        for way in ("higher", "lower")
    }  # fmt: skip
    assert both["higher"].value is not None
    assert both["lower"].value == pytest.approx(1 - both["higher"].value)
    assert "direction suspect" in both["lower"].note
    assert both["higher"].note == ""
    assert both["higher"] == auc(members, others)


def test_every_format_reads_to_the_same_numbers(tmp_path: Path) -> None:
    lists = json.loads(FILES[0].read_text(encoding="utf-8"))
    attacks, table = [], []
    for key, (name, way) in ATTACKS.items():
        end = "_sample_res" if key == "P_MIA" else "_sample"
        classes = {kind: lists[f"{key}_{kind}{end}"] for kind in ("positive", "negative")}
        attacks.append({"attack": name, "member_has": way, "members": classes["positive"],
                        "non_members": classes["negative"]})  # fmt: skip
        for kind, scores in classes.items():
            member = kind == "positive"
            table += [
                {"attack": name, "member_has": way.value, "member": member, "score": score, "release": trial,
                 "candidate": f"{kind} {trial}", "model": "bert", "data": "imdb"}
                for trial, score in enumerate(scores)
            ]  # fmt: skip
    trials = {"members": list(range(100)), "non_members": list(range(100))}
    document = own(attacks, releases=trials, same_candidates=True, model="bert", data="imdb")
    frame = pd.DataFrame(table).sample(frac=1, random_state=0)
    frame.to_csv(tmp_path / "long.csv", index=False)
    frame.to_parquet(tmp_path / "long.parquet")
    expected = judged(FILES[0]).to_dict()
    known = {attack["attack"]: attack for attack in expected["attacks"]}
    for path in (written(tmp_path, document), tmp_path / "long.csv", tmp_path / "long.parquet"):
        found = judged(path).to_dict()
        for attack in found["attacks"]:
            assert flat(attack) == pytest.approx(flat(known[attack["attack"]]), abs=1e-12)
        assert flat(found["pairs"]) == pytest.approx(flat(expected["pairs"]), abs=1e-12)
        assert (found["model"], found["data"], found["same_candidates"]) == ("bert", "imdb", "stated")


@pytest.mark.parametrize(
    ("changes", "pairing", "paired"),
    [
        ({}, Pairing.ASSUMED, True),
        ({"same_candidates": True}, Pairing.STATED, True),
        ({"same_candidates": False}, Pairing.DIFFERENT, False),
    ],
)
def test_who_says_that_candidates_are_the_same(
    tmp_path: Path, changes: dict[str, Any], pairing: Pairing, paired: bool
) -> None:
    scores = {"member_has": "higher", "members": [1, 2, 4], "non_members": [0, 3]}
    other = {"member_has": "higher", "members": [1, 0, 4], "non_members": [2, 3]}
    found = judged(written(tmp_path, own([{"attack": "a", **scores}, {"attack": "b", **other}], **changes)))
    assert found.pairing is pairing
    assert [pair.paired for pair in found.pairs] == [paired]
    assert judged(Path(found.file), unpaired=True).pairs[0].paired is False


def test_attacks_on_other_candidates_are_compared_without_pairing(tmp_path: Path) -> None:
    table = [("a", 1, 5.0, "x"), ("a", 1, 3.0, "y"), ("a", 0, 1.0, "u"), ("a", 0, 4.0, "v")]
    table += [("b", 1, 5.0, "x"), ("b", 1, 0.0, "z"), ("b", 0, 1.0, "u"), ("b", 0, 4.0, "v")]
    lines = [f"{a},higher,{m},{s},{c}" for a, m, s, c in table]
    path = written(tmp_path, "\n".join(["attack,member_has,member,score,candidate", *lines]), "other.csv")
    found = judged(path)
    assert found.pairing is Pairing.DIFFERENT
    assert not found.pairs[0].paired


def test_the_threshold_is_in_the_unit_of_the_file(tmp_path: Path) -> None:
    scores = {"attack": "loss", "member_has": "lower", "members": [0.1, 0.2], "non_members": [0.3] * 100}
    point = judged(written(tmp_path, own([scores]))).attacks[0].tpr.confusion
    assert point is not None
    assert point.threshold == 0.2
    assert point.true_positives == 2


def test_several_members_of_a_release_are_resampled_together(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(20), 10).tolist()
    one = {"attack": "a", "member_has": "higher", "members": (rng.normal(size=200) + np.repeat(rng.normal(size=20), 10)
           + 1).tolist(), "non_members": rng.normal(size=200).tolist()}  # fmt: skip
    releases = {"members": ids, "non_members": ids}
    clustered = judged(written(tmp_path, own([one], releases=releases))).attacks[0]
    alone = judged(written(tmp_path, own([one]))).attacks[0]
    assert "Obuchowski" in clustered.auc.kind
    assert "cluster bootstrap" in clustered.tpr.estimate.kind
    assert "DeLong" in alone.auc.kind
    assert clustered.tpr.estimate.value == alone.tpr.estimate.value
    assert clustered.auc.high - clustered.auc.low > alone.auc.high - alone.auc.low  # type: ignore[operator]


def test_what_cannot_be_estimated_has_a_reason(tmp_path: Path) -> None:
    attacks = [
        {"attack": "nobody", "member_has": "higher", "members": [], "non_members": [1.0, 2.0]},
        {"attack": "flat", "member_has": "higher", "members": [3.0] * 4, "non_members": [3.0] * 5},
        {"attack": "apart", "member_has": "lower", "members": [0.0] * 4, "non_members": [1, 2, 3, 4, 5]},
    ]
    nobody, flat, apart = judged(written(tmp_path, own(attacks))).attacks
    assert (nobody.auc.value, nobody.auc.note, nobody.tpr.estimate.value) == (None, "no members", None)
    assert nobody.balanced_accuracy is None
    assert flat.auc.value == 0.5
    assert "all scores are the same" in flat.remark
    assert flat.auc.low is not None
    assert "5 non-members cannot show" in flat.tpr.estimate.note
    assert apart.auc.value == 1.0
    assert "do not overlap" in apart.remark
    (pair,) = judged(tmp_path / "scores.json").pairs
    assert (pair.first, pair.second, pair.within_noise) == ("apart", "flat", None)


SCORES = {"attack": "a", "member_has": "higher", "members": [1.0], "non_members": [0.0]}
BAD_JSON = [
    (own([SCORES | {"member_has": "up"}]), r"attacks\.0\.member_has='up': input should be 'higher' or 'lower'"),
    (own([{k: v for k, v in SCORES.items() if k != "member_has"}]), r"attacks\.0\.member_has is missing; add it"),
    (own([SCORES | {"memebrs": [1]}]), r"unknown key 'attacks\.0\.memebrs'.*Did you mean members"),
    (own([SCORES, SCORES]), r"attack 'a' is there twice"),
    (own([]), r"no attack in it"),
    (own([SCORES | {"members": [0.5, float("nan")]}]), r"attack 'a': members\[1\] is NaN"),
    (own([SCORES | {"non_members": [0.5, None]}]), r"attack 'a': non_members\[1\] is NaN"),
    (own([SCORES | {"members": [float("inf")]}]), r"attack 'a': members\[0\] is inf"),
    (own([SCORES | {"members": ["0.5"]}]), r"attacks\.0\.members\.0='0\.5'"),
    (own([SCORES | {"members": [True]}]), r"attacks\.0\.members\.0=True"),
    (own([SCORES], privkit_scores=2), r"privkit_scores=2: input should be 1"),
    ({"attacks": [SCORES]}, r"privkit_scores is missing"),
    (own([SCORES], releases={"members": [1, 2], "non_members": [1]}), r"releases names 2 members, .* scores 1; give"),
    (own([SCORES, SCORES | {"attack": "b", "members": [1, 2]}], same_candidates=True),
     r"same_candidates is true, and attack 'a' scores 1 and 1 candidates .*'b' 2 and 1; give both"),
    ({"scores": [1, 2]}, r"evaluation: JSON .*; or long_table: CSV .*; or projres: JSON as published"),
    ([1, 2], r"no file of scores that is known"),
    ('{"attacks": [', r"cannot be read .*is it what its ending says"),
    ('{"attacks": [], "attacks": []}', r"key 'attacks' is there twice"),
    ({"Cosine_positive_sample": [1.0]}, r"Cosine has no negative sample"),
    ({"Cosine_positive_sample": [1.0], "Cosine_negative_sample": 3}, r"Cosine_negative_sample is no number or no list"),
    ({"Cosine_positive_sample": [1.0, "x"]}, r"Cosine_positive_sample\[1\] is no number"),
    ({"Mine_positive_sample": [1.0], "Mine_negative_sample": [0.0]}, r"attack 'Mine' has no declared direction"),
    ({"Cosine_positive_sample": [1.0], "seed": 3}, r"key 'seed' is neither scores nor a cost"),
    (
        {"P_MIA_positive_sample_res": [1.0, float("nan")], "P_MIA_negative_sample_res": [0.0]},
        r"attack 'ProjRes': members\[1\] is NaN",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("content", "sentence"), BAD_JSON)
def test_json_that_is_not_as_documented_is_refused(tmp_path: Path, content: Any, sentence: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError, match=sentence) as refused:
        judged(path)
    assert str(refused.value).startswith(path.as_posix())


def test_a_refusal_does_not_print_all_scores(tmp_path: Path) -> None:
    path = written(tmp_path, own({"loss": {"members": list(range(5000))}}))
    with pytest.raises(InputError, match="should be a valid list") as refused:
        judged(path)
    assert len(str(refused.value)) < 600


HEAD = "attack,member_has,member,score"
BAD_CSV = [
    ("attack,member,score\na,1,2", r"column 'member_has' is missing"),
    (f"{HEAD},colour\na,higher,1,2,red", r"unknown key 'colour'"),
    (f"{HEAD}\na,up,1,2", r"member_has of attack 'a' is 'up'; give 'higher'"),
    (f"{HEAD}\na,higher,1,2\na,lower,0,2", r"'higher' and 'lower'"),
    (f"{HEAD}\na,higher,maybe,2", r"member in row 1 is maybe"),
    (f"{HEAD}\na,higher,1,2\na,higher,0,high", r"score in row 2 is high"),
    (f"{HEAD}\na,higher,1,2\na,higher,0,", r"score in row 2 is nan"),
    (f"{HEAD}\n,higher,1,2", r"attack in row 1 is empty"),
    (f"{HEAD},candidate\na,higher,1,2,x\na,higher,1,1,x", r"scores candidate 'x' twice; give one score"),
    (
        f"{HEAD},candidate\na,higher,1,2,x\na,higher,0,1,x",
        r"candidate 'x' as a member and as a non-member; remove",
    ),
    (f"{HEAD},data\na,higher,1,2,x\na,higher,0,1,y", r"column 'data' holds 'x' and 'y'"),
    (HEAD, r"no attack in it"),
]


@pytest.mark.parametrize(("text", "sentence"), BAD_CSV)
def test_a_table_that_is_not_as_documented_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        judged(written(tmp_path, text, "scores.csv"))


def test_members_may_be_written_as_numbers_of_any_kind(tmp_path: Path) -> None:
    texts = ("true", "1", "1.0"), ("False", "0", "0.0")
    rows = [f"a,higher,{text},{i}" for i, kind in enumerate(texts) for text in kind]
    (found,) = judged(written(tmp_path, "\n".join([HEAD, *rows]), "scores.csv")).attacks
    assert (found.auc.n_members, found.auc.n_non_members) == (3, 3)


def test_a_file_of_another_ending_or_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ends in '\.txt'; give a \.json, \.csv, \.parquet file"):
        judged(written(tmp_path, "", "scores.txt"))
    with pytest.raises(InputError, match="does not exist"):
        judged(tmp_path / "absent.json")
    with pytest.raises(InputError, match=r"is a folder; give its files, such as '.*/\*\.json'"):
        judged(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        judged(written(tmp_path, "no parquet", "scores.parquet"))


def test_the_published_directions_are_declared() -> None:
    lower = {key for key, published in ATTACKS.items() if published.member_has is Direction.LOWER}
    assert lower == {"P_MIA", "Fed_loss", "Score_diff", "Score_Ratio"}


def test_the_examples_of_the_document_are_read(tmp_path: Path) -> None:
    text = (Path(__file__).parent.parent / "docs" / "scores.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", text, flags=re.DOTALL)
    (table,) = re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)
    found = judged(written(tmp_path, example))
    assert [one.attack for one in found.attacks] == ["loss", "cosine"]
    assert (found.pairing, found.released) == (Pairing.STATED, True)
    found = judged(written(tmp_path, table, "scores.csv"))
    assert (found.pairing, found.released) == (Pairing.STATED, True)
    for key, published in ATTACKS.items():
        row = next(line for line in text.splitlines() if line.startswith("|") and f"`{key}`" in line)
        assert published.attack in row
        assert row.rstrip(" |").endswith(published.member_has.value)
