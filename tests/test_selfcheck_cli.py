"""``privkit selfcheck`` on the command line, and the libraries that it asks."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accountant.selfcheck import peer_table
from accountant.selfcheck.case import Case
from accountant.selfcheck.peers import _ask, _questions
from accountant.selfcheck.peers._ask import Answer
from accountant.selfcheck.peers._peer import Peer
from privkit.cli.app import app
from privkit.selfcheck.run import SHIPPED, read

CASES = {case.name: case for case in read(SHIPPED).accounting}
NAN = "anchor_nan_sigma"


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["selfcheck", *arguments])


def written(tmp_path: Path, *plain: dict[str, Any]) -> str:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(plain), "utf-8")
    return str(path)


def plain(value: str = "0.36787944117144232160", **changed: Any) -> dict[str, Any]:
    params = {"mechanism": "laplace", "eps0": 1.0}
    return {
        "case": "one",
        "kind": "rho",
        "params": params,
        "value": value,
        "tolerance": "rel 1e-9",
        **changed,
    }


def test_the_shipped_cases_pass() -> None:
    found = run("--no-peers")
    assert found.exit_code == 0, found.output
    assert found.output.splitlines()[-1] == "96 run, 96 passed, 0 failed, 0 not run"
    assert "other libraries" not in found.output


def test_a_wrong_value_fails_and_says_by_how_much(tmp_path: Path) -> None:
    found = run("--no-peers", "--cases", written(tmp_path, plain("0.367"), plain()))
    assert found.exit_code == 1
    assert "FAILED one: off by +0.000879, 0.0024 of it; allowed rel 1e-9; expected 0.367" in found.output
    assert found.output.splitlines()[-1] == "2 run, 1 passed, 1 failed, 0 not run"


def test_an_unknown_kind_is_not_run(tmp_path: Path) -> None:
    found = run("--no-peers", "--cases", written(tmp_path, plain(kind="perplexity"), plain()))
    assert found.exit_code == 1
    assert "NOT RUN one: kind 'perplexity' is not known" in found.output
    assert found.output.splitlines()[-1] == "1 run, 1 passed, 0 failed, 1 not run"


@pytest.mark.parametrize("content", ["{", "[]", '[{"case": "one"}]', "\x00", "[" + "9" * 5000 + "]"])
def test_a_malformed_file_is_refused_in_one_sentence(
    content: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    from privkit import cli

    path = tmp_path / "cases.json"
    path.write_text(content, "utf-8")
    monkeypatch.setattr("sys.argv", ["privkit", "selfcheck", "--cases", str(path)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert run("--cases", str(tmp_path / "nothing.json")).exit_code != 0


def test_json_holds_everything(tmp_path: Path) -> None:
    found = run("--no-peers", "--json", "--cases", written(tmp_path, plain(), plain(kind="perplexity")))
    told = json.loads(found.output)
    assert told["summary"] == "1 run, 1 passed, 0 failed, 1 not run"
    assert [case["status"] for case in told["cases"]] == ["passed", "not run"]
    assert told["peers"] == []


def test_verbose_names_every_case(tmp_path: Path) -> None:
    found = run("--no-peers", "--verbose", "--cases", written(tmp_path, plain()))
    assert "passed   one: 0.36787944117144" in found.output


def peer(name: str) -> Peer:
    return next(peer for peer in _questions.installed() if peer.name == name)


def asked(name: str, case: str) -> float:
    question = _questions.question_for(peer(name), CASES[case])
    assert question is not None
    return question()


def test_the_closed_form_and_the_renyi_accountant_of_dp_accounting_let_a_nan_through() -> None:
    assert asked("dp-accounting RDP", NAN) == 0
    assert asked("dp-accounting closed form", NAN) == 0
    answers = [Answer(case=CASES[NAN], value=0.0)]
    assert peer_table.row("dp-accounting RDP", answers).unsafe == (NAN,)


@pytest.mark.filterwarnings("ignore:GDP accounting")
def test_opacus_gaussian_accountant_forgets_all_but_the_last_noise() -> None:
    found = asked("opacus GDP", "gaussian_hetero_rounds")
    row = peer_table.row("opacus GDP", [Answer(case=CASES["gaussian_hetero_rounds"], value=found)])
    assert row.unsafe == ("gaussian_hetero_rounds",)
    assert row.worst is not None
    assert row.worst > 0.3


def test_losses_on_a_grid_round_small_pure_losses_up() -> None:
    assert asked("dp-accounting PLD", "pure_eps_eps00.00005_T100") > 6 * 0.00083
    near = asked("dp-accounting PLD", "joint_pure0.002_gauss26_T50")
    assert near == pytest.approx(1.01755205, rel=1e-6)


def test_a_configuration_that_is_known_to_hang_is_not_tried() -> None:
    question = _questions.question_for(
        peer("dp-accounting PLD"), CASES["gaussian_eps_sigma0.001_T1_delta1e-5"]
    )
    assert question is not None
    with pytest.raises(ValueError, match="known to hang"):
        question()


def test_a_case_is_asked_only_of_those_who_know_its_mechanism() -> None:
    question = _questions.question_for
    assert question(peer("opacus RDP"), CASES["pure_eps_eps00.1_T50"]) is None
    assert question(peer("opacus RDP"), CASES["br_zcdp_eta1"]) is None
    assert question(peer("opacus RDP"), CASES["rdp_improved_conversion_continuous_alpha"]) is None
    assert question(peer("dp-accounting PLD"), CASES[NAN]) is None


def test_answers_come_from_another_process_and_what_crashes_is_not_asked_again() -> None:
    import time

    wanted = [CASES[NAN], CASES["gaussian_eps_sigma1_T1_delta1e-5"]]
    found = _ask.ask(peer("dp-accounting closed form"), wanted, each_s=60.0, deadline=time.monotonic() + 120)
    assert [answer.value for answer in found] == [0.0, pytest.approx(4.377178095681, rel=1e-9)]
    late = _ask.ask(peer("dp-accounting closed form"), wanted, each_s=60.0, deadline=time.monotonic() - 1)
    assert [(answer.value, answer.reason) for answer in late] == [(None, "no time left")] * 2


def test_errors_of_a_row_are_relative_and_only_promises_that_are_too_good_are_unsafe() -> None:
    def case(name: str, value: str) -> Case:
        return Case(name=name, kind="epsilon", params={}, value=value, tolerance="1e-9")

    found = peer_table.row(
        "somebody",
        [
            Answer(case=case("above", "2.0"), value=2.5),
            Answer(case=case("below", "4.0"), value=3.9),
            Answer(case=case("zero", "0.0"), value=0.1),
            Answer(case=case("silent", "1.0"), value=None, reason="no answer in 20 s"),
        ],
    )
    assert (found.asked, found.answered, found.unsafe) == (4, 3, ("below",))
    assert (found.worst, found.worst_case) == (0.25, "above")
    assert found.details[3] == "silent: n/a: no answer in 20 s"
