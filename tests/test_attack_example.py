"""The attack that docs/attacks.md writes is one: it is found by name, keeps the contract, and is a row of an audit."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import attacks.membership
from attacks._base import AbstractAttack
from privkit import plug
from privkit.audit.choice import every_attack
from tests import test_attacks_contract as contract
from tests.test_attacks_contract import clustered, noisy, plain, plain_clusters

__all__ = ["clustered", "noisy", "plain", "plain_clusters"]  # fixtures

DOCUMENT = (Path(__file__).parent.parent / "docs" / "attacks.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AbstractAttack]:
    """Put the file where the document says, as far as Python can tell."""
    (text,) = re.findall(r"```python\n(.*?)```", DOCUMENT, flags=re.DOTALL)
    assert len([line for line in text.splitlines() if line.strip()]) <= 15
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "aligned.py").write_text(text, encoding="utf-8")
    attacks.membership.__path__.append(str(folder))
    found = plug.build("attacks.membership", "aligned")
    assert isinstance(found, AbstractAttack)
    yield found
    attacks.membership.__path__.remove(str(folder))
    del sys.modules["attacks.membership.aligned"]


def test_it_is_an_attack_of_every_audit(attack):
    assert attack.name in {found.name for found in every_attack()}


@pytest.mark.parametrize(
    "law",
    [
        contract.test_it_declares_who_attacks_and_what_is_known,
        contract.test_settings_build_the_same_attack_again,
    ],
    ids=lambda law: law.__name__,
)
def test_it_declares_what_every_attack_does(attack, law):
    law(attack)


@pytest.mark.parametrize(
    "law",
    [
        contract.test_no_candidates_give_no_scores,
        contract.test_the_same_view_gives_the_same_scores_to_the_bit,
        contract.test_a_run_without_any_release_is_not_applicable,
        contract.test_what_was_sent_instead_is_said_before_anything_that_would_be_no_help,
        contract.test_reference_records_are_asked_for_by_the_attack_that_needs_them,
    ],
    ids=lambda law: law.__name__,
)
def test_it_keeps_the_laws_of_one_view(attack, noisy, law):
    law(attack, noisy)


Law = Callable[..., Any]


@pytest.mark.parametrize(
    "law",
    [
        contract.test_a_permutation_of_candidates_permutes_their_scores,
        contract.test_a_score_does_not_depend_on_the_other_candidates,
    ],
    ids=lambda law: law.__name__,
)
def test_it_keeps_the_laws_of_its_candidates(attack, noisy, clustered, law: Law):
    law(attack, noisy, clustered)


def test_it_needs_no_truth_and_has_the_declared_direction(
    attack, noisy, plain, clustered, plain_clusters, tmp_path
):
    contract.test_scores_are_the_same_when_the_truth_is_deleted(attack, noisy, tmp_path)
    contract.test_members_of_an_undefended_run_never_score_below_chance(attack, plain, plain_clusters)
    contract.test_candidates_that_have_nothing_to_do_with_the_run_score_by_chance(
        attack, noisy, plain, clustered, plain_clusters
    )


@pytest.mark.parametrize("change", contract.CHANGES, ids=lambda change: change.__name__)
def test_what_is_missing_is_said_or_not_needed(attack, noisy, change):
    contract.test_what_is_missing_is_said_in_a_sentence_or_not_needed(attack, noisy, change)


def test_every_attack_and_tier_of_the_document_exists():
    for package in ("membership", "model", "canary", "hijack", "split"):
        (row,) = re.findall(rf"^\| `attacks/{package}/` \|.*$", DOCUMENT, flags=re.MULTILINE)
        names = set(re.findall(r"`(\w+)`", row.split("|", 2)[2]))
        assert names == set(plug.names(f"attacks.{package}")) - {"aligned"}
