"""What each defense stops and what it does not, in one sentence made of what was measured."""

from collections.abc import Iterator, Sequence

from reports import numbers
from reports.defense_cells import DefenseCell, Tried, groups, of_findings
from reports.findings import Findings


def of_audit(findings: Findings) -> list[str]:
    """Return the sentences of one audit; none where it is not of the gradient lab."""
    return [sentence for _, sentence in sentences(of_findings("", findings))]


def sentences(cells: Sequence[DefenseCell]) -> list[tuple[DefenseCell, str]]:
    """Return every protected cell with its sentence.

    An attack is stopped where the test of :mod:`attacks.statistics.exchangeable` does not reject, corrected by Holm for
    all attacks on the cell, that it does no better than chance; else it is not.

    Args:
        cells: of one table; an undefended one says what was there to be stopped.
    """
    found = []
    for group in groups(cells):
        bare = next((cell for cell in group if not cell.protected), None)
        found += [(cell, _sentence(cell, bare)) for cell in group if cell.protected]
    return found


def _sentence(cell: DefenseCell, bare: DefenseCell | None) -> str:
    parts = [*_projection(cell, bare), *_others(cell, bare)]
    return "".join([cell.title, *(parts or [": no attack gave a number"]), *_ceiling(cell), "."])


def _projection(cell: DefenseCell, bare: DefenseCell | None) -> Iterator[str]:
    """Yield what became of ProjRes; nothing where it gave no number."""
    found = cell.best.get("projection")
    if found is None:
        return
    if found.compared.tied:
        yield " leaves ProjRes no information, as all records get one score"
    elif not found.beats_chance:
        yield f" leaves ProjRes at {found.text}, {_against_chance(found)}"
    elif before := _more_before(found, bare):
        yield f" takes ProjRes from {before.text} to {found.text}, still {_against_chance(found)}"
    else:
        yield f" does not stop ProjRes, which tells members apart with AUC {found.text}"
    bare_found = None if bare is None else bare.best.get("projection")
    if bare_found is not None and not (found.beats_chance or bare_found.beats_chance):
        yield " (as it is without a defense)"


def _more_before(found: Tried, bare: DefenseCell | None) -> Tried | None:
    """Return what ProjRes got without a defense, if that is above the interval of what it gets now."""
    before, high = None if bare is None else bare.best.get("projection"), found.compared.auc.high
    return before if before is not None and high is not None and high < before.value else None


def _others(cell: DefenseCell, bare: DefenseCell | None) -> Iterator[str]:
    """Yield what became of all other attacks, named by the one of the largest AUC; nothing where none gave a number."""
    projection = cell.best.get("projection")
    stopped = projection is not None and not projection.beats_chance
    others = [one for one in cell.tried if one.taken.family != "projection"]
    apart = [one for one in others if one.beats_chance]
    if not others:
        return
    best = max(apart or others, key=lambda one: one.value)
    if not apart:
        among = f"the best of {len(others)} other attacks, {best.name}," if others[1:] else best.name
        join = "," if projection is None else ", and" if stopped else ", but"
        yield f"{join} {among} reaches {best.text}, {_against_chance(best)}"
    elif projection is None:
        yield f" does not stop {best.name}, which tells members apart with AUC {best.text}"
    elif stopped:
        yield f", but {best.name} still tells members apart with AUC {best.text}"
    elif _more_before(projection, bare):
        yield f", and {best.name} tells members apart with AUC {best.text}"
    else:
        yield f", nor {best.name}, with AUC {best.text}"


def _against_chance(one: Tried) -> str:
    """Return whether an attack beats chance, with the p-value where its interval alone would say otherwise."""
    low = one.compared.auc.low
    said = "better than chance" if one.beats_chance else "no better than chance"
    agrees = low is None or (low > 0.5) == one.beats_chance
    return said if agrees else f"{said} (Holm p {numbers.p_value(one.chance)})"


def _ceiling(cell: DefenseCell) -> Iterator[str]:
    """Yield how attacks stand to the ceiling of the noise, where there is one."""
    if cell.ceiling is None:
        return
    above = [one for one in cell.tried if one.above_ceiling]
    limit = f"the ceiling {numbers.rate(cell.ceiling)} that its noise proves"
    if not above:
        yield f"; no attack is above {limit}"
        return
    best = max(above, key=lambda one: one.value)
    yield f"; {best.name} is above {limit} with AUC {best.text} (adjusted p {numbers.p_value(best.taken.adjusted_p)})"
