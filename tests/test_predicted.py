"""What the matched filter is expected to reach, beside what it reaches; and how reports say both."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from attacks._base import AbstractAttack
from attacks.statistics.estimate import Estimate
from privkit import plug
from privkit.release import Update
from privkit.transcript import Records
from reports import audit_files, audit_table, predicted
from reports.findings import Taken
from tests import gradient_lab as lab
from tests import gradient_scene as scene
from tests import made


def attack(name: str, **settings: object) -> AbstractAttack:
    found = plug.build("attacks.gradient", {"name": name, **settings})
    assert isinstance(found, AbstractAttack)
    return found


@pytest.mark.parametrize(
    ("batch", "sigma"), [(64, None), (128, None), (16, 0.1), (16, 0.25), (16, 0.5), (16, 1.0), (16, 2.0)]
)
def test_what_is_expected_is_what_is_measured(batch, sigma):
    case = lab.case(scene.bank(900), batch=batch, uploads=16, public=300, seed=1, sigma=sigma, asked=16)
    for name in ("matched_filter", "head_only"):
        expected = attack(name).expected(case.view, case.records)
        assert expected is not None
        assert len(np.unique(expected)) == 1
        measured = roc_auc_score(case.members, attack(name).score(case.view, case.records))
        assert expected[0] == pytest.approx(measured, abs=0.05), name


def test_many_senders_add_noise_of_their_own_each():
    """Under secure aggregation an event tells one client's noise, and the sum holds everybody's."""
    bank, senders, own = scene.bank(900), 4, 0.5
    case = lab.case(bank, batch=16, uploads=16, public=300, seed=1, sigma=own * senders**0.5, asked=16)
    told = tuple(replace(r, event=lab.dp_event(sigma=own, clip=1.0)) for r in case.view.releases)
    view = replace(case.view, releases=told, senders=senders)
    expected = attack("matched_filter").expected(view, case.records)
    measured = roc_auc_score(case.members, attack("matched_filter").score(view, case.records))
    assert expected is not None
    assert expected[0] == pytest.approx(measured, abs=0.05)
    alone = attack("matched_filter").expected(replace(view, senders=1), case.records)
    assert alone is not None
    assert alone[0] > expected[0] + 0.1


def test_it_reads_nothing_of_an_upload_but_its_names_and_its_event():
    case = lab.case(scene.bank(200), batch=4, uploads=3, public=60, seed=1)
    wanted = attack("matched_filter").expected(case.view, case.records)
    releases = []
    for r in case.view.releases:
        assert isinstance(r.payload, Update)
        named = {n: np.ones_like(g) for n, g in r.payload.named.items()}
        releases.append(replace(r, payload=Update(named=named, means="gradient")))
    other = replace(case.view, releases=tuple(releases))
    np.testing.assert_array_equal(attack("matched_filter").expected(other, case.records), wanted)


def test_nothing_is_expected_where_no_law_tells():
    case = lab.case(scene.bank(200), batch=4, uploads=3, public=60, seed=1)
    assert attack("projres").expected(case.view, case.records) is None
    fused = Records(vectors=case.records.vectors, labels=case.records.labels, clients=case.records.clients)
    assert attack("matched_filter").expected(case.view, fused) is None
    few = replace(case.view, public={0: lab.taken(case.view.public[0], np.arange(7))})
    steps = tuple(
        replace(r, payload=Update(named=r.payload.named, means="delta"))  # pyright: ignore
        for r in case.view.releases
    )
    for view in (few, replace(case.view, releases=steps), replace(case.view, repeatable=False)):
        assert np.isnan(attack("matched_filter").expected(view, case.records)).all()  # pyright: ignore


# ---------------------------------------------------------------------- reports


def filtered(**changes: object) -> Taken:
    area = Estimate(
        value=0.956, low=0.93, high=0.98, level=0.95, kind="", n_members=9, n_non_members=9, null=0.5
    )
    return replace(Taken(attack="matched_filter", tier="shadow", auc=area), **changes)


def test_both_stand_beside_each_other_in_every_table():
    cell = replace(made.silent("fisguard"), taken=(filtered(predicted=0.957),))
    findings = made.findings(cells=(cell,))
    text = "predicted 0.957, measured 0.956 [0.930, 0.980]"
    assert text in audit_table.attacks(findings).markdown()
    assert text in audit_files.markdown(findings)
    (row,) = audit_table.attacks(findings).records()
    assert row["auc_predicted"] == 0.957


def test_rounds_are_listed_where_there_are_several_and_nothing_where_nothing_was_expected():
    rounds = {"predicted": 0.96, "predicted_by_round": (0.962, None, 0.958), "by_round": (0.966, None, 0.949)}
    cell = replace(made.silent("fisguard"), taken=(filtered(**rounds),))
    (note,) = predicted.notes(made.findings(cells=(cell,)))
    assert note.endswith("by round: fisguard, matched_filter: 1 0.962 / 0.966, 3 0.958 / 0.949.")
    once = replace(cell, taken=(filtered(predicted=0.96, predicted_by_round=(None, 0.96)),))
    (note,) = predicted.notes(made.findings(cells=(once,)))
    assert "by round" not in note
    assert predicted.notes(made.findings(cells=(replace(cell, taken=(filtered(),)),))) == []
