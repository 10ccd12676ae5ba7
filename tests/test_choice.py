"""Which attacks an audit runs, and with which settings."""

from pathlib import Path

import pytest

from attacks._base import AbstractAttack
from attacks.hijack.inversion import FeatureInversion
from privkit.audit.choice import configured, every_attack
from privkit.errors import InputError

ON_PROTOTYPES = ["cosine", "distance", "inner_product", "likelihood_ratio", "shadow", "tracing"]
ON_WEIGHTS = [
    "entropy",
    "lira_offline",
    "lira_online",
    "loss",
    "loss_trajectory",
    "modified_entropy",
    "rescaled_logit",
    "rmia",
]
ON_GRADIENTS = [
    "candidate_loss",
    "column_energy",
    "fedmia",
    "gradient_cosine",
    "gradient_difference",
    "head_only",
    "joint_decoding",
    "leverage",
    "loss_trend",
    "matched_filter",
    "projres",
    "projres_as_coded",
    "score_difference",
    "score_ratio",
]
ON_CANARIES = ["antipodal", "label_moving", "one_round", "presence"]
NAMES = sorted(["decoder", "inversion", *ON_CANARIES, *ON_PROTOTYPES, *ON_WEIGHTS, *ON_GRADIENTS])


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


@pytest.mark.parametrize("name", ["hijack-quick", "hijack-poisoned"])
def test_the_other_files_of_attacks_are_valid(name):
    attacks = configured(Path(__file__).parents[1] / "configs" / f"{name}.yaml")
    assert {"inversion", "decoder"} <= {attack.name for attack in attacks}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("attacks: [cosin]", "attack 'cosin' is unknown; known are antipodal, .* Did you mean cosine?"),
        ("attacks: [{tier: client}]", "names no attack"),
        ("attacks: [null]", "names no attack"),
        ("attacks: [cosine, cosine]", "attack cosine stands there twice"),
        (
            "attacks: [{name: matched_filter, estimator: dual}, {name: matched_filter, estimator: dual, ridge: 1}]",
            r"attack matched_filter \(dual\) stands there twice",
        ),
        ("attacks: [inversion, inversion]", r"attack inversion \(public\) stands there twice"),
        ("attacks: [{name: inversion, step: 3}]", "unknown key 'step'; .* Did you mean steps?"),
        ("attacks: [{name: inversion, steps: 0}]", "steps=0: input should be greater than or equal to 1"),
        ("attacks: []", r"attacks is \[\]; list attacks"),
        ("defense: igpp", "unknown key 'defense'; known keys are attacks"),
        (
            "method: fedproto",
            "holds method, so it is a federation to train; give it to `privkit train .*attacks.yaml`",
        ),
        ("steps: 3", "holds steps, so it is a study of split learning; give it to `privkit hijack"),
        ("attacks: cosine", "attacks is 'cosine'; list attacks"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as error:
        configured(written(tmp_path, text))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ON_PROTOTYPES)
def test_a_prototype_attack_can_be_asked_with_the_clients_own_encoder(tmp_path, name):
    attacks = configured(written(tmp_path, f"attacks: [{name}, {{name: {name}, tier: client}}]"))
    plain, own = [a for a in attacks if isinstance(a, AbstractAttack) and a.name == name]
    assert (plain.assumed.tier, own.assumed.tier) == (plain.threat.tier, "client")
    assert plain.assumed == plain.threat
    assert "the public encoder" not in own.assumed.knows
    assert any("outside the claimed guarantee" in known for known in own.assumed.knows)


@pytest.mark.parametrize("name", ON_WEIGHTS)
def test_a_model_attack_can_be_asked_of_the_personalised_model(tmp_path, name):
    attacks = configured(written(tmp_path, f"attacks: [{name}, {{name: {name}, tier: insider}}]"))
    plain, own = [a for a in attacks if isinstance(a, AbstractAttack) and a.name == name]
    assert (plain.assumed.tier, own.assumed.tier) == (plain.threat.tier, "insider")
    assert any("outside the claimed guarantee" in known for known in own.assumed.knows)


@pytest.mark.parametrize("name", ["matched_filter", "head_only"])
def test_two_estimators_of_one_attack_may_stand_in_one_file(tmp_path, name):
    attacks = configured(written(tmp_path, f"attacks: [{name}, {{name: {name}, estimator: dual}}]"))
    assert [a.label for a in attacks if a.name == name] == [name, f"{name} (dual)"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "{name: cosine, tier: insider}",
            "tier=.insider.: this attack is of tier public; .* ask it in tier client",
        ),
        (
            "{name: tracing, tier: public}",
            "tier='public': this attack is of tier shadow; .* ask it in tier client",
        ),
        (
            "{name: rmia, tier: client}",
            "tier='client': this attack is of tier shadow; .* ask it in tier insider",
        ),
        ("{name: cosine, tier: server}", "tier='server': input should be 'public', 'shadow', "),
    ],
)
def test_a_tier_that_an_attack_does_not_have_is_refused(tmp_path, settings, message):
    with pytest.raises(InputError, match=message):
        configured(written(tmp_path, f"attacks: [{settings}]"))


@pytest.mark.parametrize("name", [*ON_PROTOTYPES, *ON_WEIGHTS])
def test_an_attacks_own_tier_may_be_written_and_is_the_same_attack(tmp_path, name):
    (plain,) = [a for a in every_attack() if a.name == name]
    assert isinstance(plain, AbstractAttack)
    tier = plain.threat.tier
    found = configured(written(tmp_path, f"attacks: [{{name: {name}, tier: {tier}}}]"))
    assert [a for a in found if a.name == name] == [plain]
    assert plain.settings()["tier"] == tier
    with pytest.raises(InputError, match="stands there twice"):
        configured(written(tmp_path, f"attacks: [{name}, {{name: {name}, tier: {tier}}}]"))
