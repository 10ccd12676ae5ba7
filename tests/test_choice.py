"""Which attacks an audit runs, and with which settings."""

from pathlib import Path

import pytest

from attacks.hijack.inversion import FeatureInversion
from privkit.audit.choice import configured, every_attack
from privkit.errors import InputError

NAMES = [
    "antipodal",
    "cosine",
    "distance",
    "inner_product",
    "inversion",
    "label_moving",
    "likelihood_ratio",
    "one_round",
    "presence",
    "tracing",
]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "attacks.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_attack_runs_with_its_defaults():
    assert sorted(attack.name for attack in every_attack()) == NAMES


def test_a_file_changes_what_it_names_and_leaves_the_rest():
    attacks = configured(Path(__file__).parents[1] / "configs" / "hijack.yaml")
    inversions = [attack for attack in attacks if isinstance(attack, FeatureInversion)]
    assert [attack.tier for attack in inversions] == ["public", "shadow", "client"]
    assert {attack.steps for attack in inversions} == {100_000}
    assert sorted({attack.name for attack in attacks}) == NAMES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("attacks: [cosin]", "attack 'cosin' is unknown; known are antipodal, .* Did you mean cosine?"),
        ("attacks: [cosine, cosine]", "attack cosine stands there twice"),
        ("attacks: [{name: inversion, step: 3}]", "unknown key 'step'; .* Did you mean steps?"),
        ("attacks: [{name: inversion, steps: 0}]", "steps=0: input should be greater than or equal to 1"),
        ("attacks: []", r"attacks is \[\]; list attacks"),
        ("defense: igpp", "unknown key 'defense'; known keys are attacks"),
        ("attacks: cosine", "attacks is 'cosine'; list attacks"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as error:
        configured(written(tmp_path, text))
    assert "\n" not in str(error.value)
