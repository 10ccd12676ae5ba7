"""What a malicious server gained: pairs of cells, and the differences of their seeds."""

from dataclasses import replace

import pytest

from attacks.statistics.seeds import over_seeds
from reports import audit_files
from reports.findings import Findings
from reports.gains import gains
from tests import made

CONFIG = {"data": {"name": "digits"}, "rounds": 3}
EVIL = {"name": "stalling_prototypes", "distance": 1e6}


def audited(*, poisoned: dict, seeds=(0, 1, 2), areas=(0.60, 0.63, 0.66)) -> Findings:
    honest, evil = made.cell("honest", each=40), made.cell("evil", each=40)

    def with_areas(cell, values):
        row = replace(cell.taken[0], auc_of_run=tuple(values), auc_by_seed=over_seeds(values))
        return replace(cell, taken=(row,), cost=replace(cell.cost, per_seed=dict.fromkeys(seeds, 0.8)))

    cells = (with_areas(honest, (0.50, 0.52, 0.54)), with_areas(evil, areas))
    found = made.findings(cells=cells)
    runs = {
        name: {"seeds": list(seeds), "config": config}
        for name, config in (("honest", CONFIG), ("evil", poisoned))
    }
    return replace(found, provenance={**found.provenance, "runs": runs})


def test_differences_are_taken_seed_by_seed():
    rows = {row["measure"]: row for row in gains(audited(poisoned=CONFIG | {"server": EVIL})).rows}
    row = rows["AUC of cosine"]
    assert (row["cell"], row["twin"], row["seeds"]) == ("evil", "honest", 3)
    assert (row["honest"], row["malicious"]) == pytest.approx((0.52, 0.63))
    assert row["gain"] == pytest.approx(0.11)
    by_hand = over_seeds([0.10, 0.11, 0.12])
    assert (row["low"], row["high"]) == pytest.approx((by_hand.low, by_hand.high))
    assert rows["accuracy"]["gain"] == 0


@pytest.mark.parametrize(
    "config", [CONFIG, CONFIG | {"server": {"name": "honest"}}, CONFIG | {"rounds": 4, "server": EVIL}]
)
def test_only_a_malicious_server_with_an_honest_twin_gains(config):
    assert gains(audited(poisoned=config)).rows == []


def test_a_named_honest_server_is_a_twin_too():
    found = audited(poisoned=CONFIG | {"server": EVIL})
    runs = found.provenance["runs"]
    assert isinstance(runs, dict)
    runs["honest"] = runs["honest"] | {"config": CONFIG | {"server": {"name": "honest"}}}
    assert gains(replace(found, provenance={**found.provenance, "runs": runs})).rows


def test_the_table_is_written_where_there_is_something_to_say():
    assert "gains" in audit_files.tables(audited(poisoned=CONFIG | {"server": EVIL}))
    assert "gains" not in audit_files.tables(audited(poisoned=CONFIG))
