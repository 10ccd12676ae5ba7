"""Files of scores as tables: one row per attack, or one per pair of attacks, and in words what is within noise."""

from collections.abc import Mapping, Sequence
from typing import Any

from attacks.statistics.estimate import Estimate
from privkit.scorefiles._base import Pairing
from reports import numbers
from reports.scores_judged import SIGNIFICANCE, JudgedAttack, JudgedFile, JudgedPair
from reports.table import SCHEMA, Column, Table

_OF_FILE = Column(key="scores", title="scores")
_FILE_KEYS = ("file", "format", "model", "data")
ATTACKS = (
    _OF_FILE,
    Column(key="attack", title="attack"),
    Column(key="member_has", title="member has", rank=5),
    Column(key="n_text", title="members/non-members", right=True, rank=4),
    Column(key="auc_text", title="AUC [95 %]", right=True, sort="auc"),
    Column(key="tpr_text", title="TPR at 1 % FPR [95 %]", right=True, sort="tpr"),
    Column(key="fp_text", title="FP/N", right=True, rank=2, sort="fp"),
    Column(key="tpr_null", title="no skill", show=numbers.rate, right=True, rank=3),
    Column(key="balanced_accuracy", title="best balanced accuracy", show=numbers.rate, right=True, rank=1),
    Column(key="balanced_accuracy_null", title="no skill", show=numbers.rate, right=True, rank=3),
)
PAIRS = (
    _OF_FILE,
    Column(key="first", title="larger AUC"),
    Column(key="second", title="smaller AUC"),
    Column(key="difference_text", title="difference [95 %]", right=True, sort="difference"),
    Column(key="adjusted_p", title="Holm p", show=lambda p: numbers.p_value(p) or "n/a", right=True),
    Column(key="within_text", title="within noise"),
    Column(key="paired_text", title="compared", rank=1),
)
_PAIRING = {
    Pairing.STATED: "candidate by candidate (paired DeLong), as the file states",
    Pairing.ASSUMED: "candidate by candidate (paired DeLong), on the assumption that all attacks scored the same "
    "candidates in the same order, which the file does not state (--unpaired assumes nothing)",
    Pairing.DIFFERENT: "as if on different candidates (unpaired), which sees less where they are the same",
}


def attacks(files: Sequence[JudgedFile]) -> Table:
    """Return one row per file and attack."""
    named = _titles(files)
    rows = [_attack(named[i], file, found) for i, file in enumerate(files) for found in file.attacks]
    shown = {column.key for column in ATTACKS}
    extra = tuple(key for key in dict.fromkeys(k for row in rows for k in row) if key not in shown)
    return Table(columns=ATTACKS, rows=rows, extra=extra, notes=tuple(notes(files)))


def pairs(files: Sequence[JudgedFile]) -> Table:
    """Return one row per file and pair of attacks."""
    named = _titles(files)
    rows = [_pair(named[i], file, found) for i, file in enumerate(files) for found in file.pairs]
    extra = (*_FILE_KEYS, "difference", "difference_low", "difference_high", "p_value", "interval", "note")
    return Table(columns=PAIRS, rows=rows, extra=extra, notes=tuple(notes(files)))


def document(files: Sequence[JudgedFile]) -> dict[str, Any]:
    """Return everything as plain values that JSON can hold, with the sentences."""
    named = _titles(files)
    return {
        "schema": SCHEMA,
        "significance": SIGNIFICANCE,
        "files": [
            {**file.to_dict(), "within_noise": within_noise(name, file)}
            for name, file in zip(named, files, strict=True)
        ],
        "notes": list(notes(files)),
    }


def notes(files: Sequence[JudgedFile]) -> list[str]:
    """Return what a reader must know, most important first: what is within noise, in each file."""
    named = _titles(files)
    said = [within_noise(name, file) for name, file in zip(named, files, strict=True)]
    said += _about_attacks(named, files)
    said += [
        f"Within noise: the two-sided p-value of equal AUCs, after Holm over the pairs of a file, is above "
        f"{SIGNIFICANCE:g}; it does not show that two attacks are equal."
    ]
    for pairing in dict.fromkeys(file.pairing for file in files if file.pairs):
        which = [name for name, file in zip(named, files, strict=True) if file.pairing is pairing]
        said.append(f"{_where(which, files)}: attacks are compared {_PAIRING[pairing]}.")
    said += [text for name, file in zip(named, files, strict=True) for text in _apart(name, file)]
    said += _about_intervals(named, files)
    return [*said, *dict.fromkeys(note for file in files for note in file.evaluation.notes)]


def within_noise(name: str, file: JudgedFile) -> str:
    """Return one sentence that names the pairs of attacks whose difference is within noise."""
    tested = [pair for pair in file.pairs if pair.within_noise is not None]
    if not tested:
        return f"{name}: no two attacks could be compared."
    near: dict[str, list[str]] = {}
    for pair in tested:
        if pair.within_noise:
            near.setdefault(pair.first, []).append(pair.second)
    count = sum(map(len, near.values()))
    untested = len(file.pairs) - len(tested)
    head = f"{name}: {count} of {len(tested)} differences between attacks {'is' if count == 1 else 'are'} within noise"
    head += f" ({untested} could not be tested)" if untested else ""
    if not count:
        return f"{head}."
    return f"{head}: {'; '.join(f'{first} and {_listed(others)}' for first, others in near.items())}."


def _apart(name: str, file: JudgedFile) -> list[str]:
    """Return which pairs could not be compared candidate by candidate although the file's attacks were to be."""
    found = [f"{pair.first} and {pair.second}" for pair in file.pairs if not pair.paired]
    if not found or file.pairing is Pairing.DIFFERENT:
        return []
    return [
        f"{name}: unpaired, because they scored different numbers of candidates or releases: {'; '.join(found)}."
    ]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _titles(files: Sequence[JudgedFile]) -> list[str]:
    """Return what each file is called: model and data if those tell the files apart, else its path."""
    titles = [" ".join(part for part in (f.evaluation.model, f.evaluation.data) if part) for f in files]
    return [
        title if title and titles.count(title) == 1 else file.file
        for title, file in zip(titles, files, strict=True)
    ]


def _about_attacks(named: Sequence[str], files: Sequence[JudgedFile]) -> list[str]:
    """Return what is to be said of single numbers, each once, with the attacks that it is said of."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, file in zip(named, files, strict=True):
        for one in file.attacks:
            for text in dict.fromkeys(_texts(one)):
                found.setdefault(text, {}).setdefault(name, []).append(one.attack)
    everywhere = sum(len(file.attacks) for file in files)
    return [
        f"{'All' if sum(map(len, whose.values())) == everywhere else _whose(whose)}: {text}."
        for text, whose in found.items()
    ]


def _whose(attacks: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{name} {', '.join(names)}" for name, names in attacks.items())


def _texts(found: JudgedAttack) -> list[str]:
    tpr = found.tpr.estimate.note
    same = tpr == found.auc.note  # an empty class is the reason for both
    return [
        text for text in (found.auc.note, tpr and not same and f"TPR at 1 % FPR: {tpr}", found.remark) if text
    ]


def _about_intervals(named: Sequence[str], files: Sequence[JudgedFile]) -> list[str]:
    said = [
        "Every interval holds for the one trained model that its scores come from: another training run differs by "
        "more than it says."
    ]
    for released, words in (
        (True, "releases are the independent units of the AUC and of differences (Obuchowski)"),
        (False, "candidates are taken as independent of each other (DeLong); where several share a release, give "
         "their releases in the file"),
    ):  # fmt: skip
        which = [name for name, file in zip(named, files, strict=True) if file.released is released]
        if which:
            said.append(f"{_where(which, files)}: {words}.")
    return said


def _where(named: Sequence[str], files: Sequence[JudgedFile]) -> str:
    return "All" if len(named) == len(files) else ", ".join(named)


def _of_file(name: str, file: JudgedFile) -> dict[str, Any]:
    known = {"model": file.evaluation.model, "data": file.evaluation.data}
    return {"scores": name, "file": file.file, "format": file.format, **known}


def _attack(name: str, file: JudgedFile, found: JudgedAttack) -> dict[str, Any]:
    tpr, point = found.tpr.estimate, found.tpr.confusion
    fp = None if point is None else point.false_positives
    return {
        **_of_file(name, file),
        "attack": found.attack,
        "member_has": found.member_has.value,
        "n_text": f"{found.auc.n_members}/{found.auc.n_non_members}",
        "n_members": found.auc.n_members,
        "n_non_members": found.auc.n_non_members,
        "auc_text": _auc(found.auc),
        "auc": found.auc.value,
        "auc_low": found.auc.low,
        "auc_high": found.auc.high,
        "auc_p_no_skill": found.auc.p_value,
        "auc_interval": found.auc.kind,
        "tpr_text": numbers.interval(tpr.value, tpr.low, tpr.high),
        "tpr": tpr.value,
        "tpr_low": tpr.low,
        "tpr_high": tpr.high,
        "tpr_interval": tpr.kind,
        "tpr_null": tpr.null,
        "tpr_p_no_skill": tpr.p_value,
        "fp_text": "n/a" if fp is None else f"{fp}/{found.auc.n_non_members}",
        "fp": fp,
        "threshold": point and point.threshold,
        "balanced_accuracy": found.balanced_accuracy,
        "balanced_accuracy_null": found.balanced_accuracy_null,
        "balanced_accuracy_p_no_skill": found.advantage.p_value,
        "note": "; ".join(_texts(found)),
    }


def _auc(found: Estimate) -> str:
    """Return an AUC with four decimals, as it is compared with published ones, and its interval with three."""
    if found.value is None:
        return "n/a"
    return f"{found.value:.4f}" + ("" if found.low is None else f" [{found.low:.3f}, {found.high:.3f}]")


def _pair(name: str, file: JudgedFile, found: JudgedPair) -> dict[str, Any]:
    apart = found.difference
    words = {True: "yes", False: "no", None: "not tested"}
    return {
        **_of_file(name, file),
        "first": found.first,
        "second": found.second,
        "difference_text": numbers.interval(apart.value, apart.low, apart.high),
        "difference": apart.value,
        "difference_low": apart.low,
        "difference_high": apart.high,
        "p_value": apart.p_value,
        "adjusted_p": found.adjusted_p,
        "within_text": words[found.within_noise],
        "paired_text": "paired" if found.paired else "unpaired",
        "interval": apart.kind,
        "note": apart.note,
    }
