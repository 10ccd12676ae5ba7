"""Configurations: nothing unknown, nothing twice, no number that is none, and cells merge as written."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from privkit.config import Canaries, RunConfig, Split
from privkit.defenses.igpp import Igpp
from privkit.errors import InputError
from privkit.finetune.config import FinetuneConfig
from privkit.study import Study, load, load_as, merged, tunes

CONFIGS = Path(__file__).parents[1] / "configs"
BASE: dict[str, Any] = {
    "data": {"name": "digits"},
    "encoder": {"name": "usps_cnn"},
    "method": {"name": "fedproto"},
    "defense": {"name": "igpp", "epsilon": 1.0},
    "rounds": 2,
}
TEXT = yaml.safe_dump(BASE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.yaml"


def loaded(path: Path, text: str, **options: Any) -> Study:
    path.write_text(text, encoding="utf-8")
    return load(path, **options)


def changed(**changes: Any) -> dict[str, Any]:
    return {**BASE, **changes}


def build(**changes: Any) -> RunConfig:
    return RunConfig.from_settings(changed(**changes), where="here")


# ---------------------------------------------------------------------- one run


def test_defaults_are_written_out() -> None:
    settings = build().settings()
    assert settings["split"] == {"pool": 0.6, "reference": 0.2, "test": 0.2, "small_classes": "refuse"}
    assert settings["canaries"] == {"count": 0, "norm": 3.0, "per_class": 4}
    assert settings["model"] == {"adapter": None, "inside": False, "hidden": [], "dropout": 0.0}
    assert settings["precision"] == "fp32"
    assert "mixed" not in settings
    assert "budget" not in settings
    assert settings["method"]["training"]["epochs"] == 2


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model": {"adapter": 8}},
        {"defense": "none"},
        {"defense": {"name": "faulty_igpp", "claims": {"epsilon": 2.0}, "fault": "no_clip"}},
        {"method": {"name": "local_only", "training": {"epochs": 1, "learning_rate": 0.5}}},
        {"data": {"name": "digits", "domains": ["syn"], "per_class": None}},
        {"split": {"pool": 0.5, "reference": 0.0, "test": 0.1}, "canaries": {"count": 7, "norm": 2.0}},
        {"split": {"small_classes": "drop"}, "precision": "bf16"},
        {"model": {"adapter": 8, "inside": True, "hidden": [64, 32], "dropout": 0.1}},
        {"mixed": [{"encoder": "usps_cnn"}, {"encoder": "usps_cnn", "model": {"hidden": [8]}}]},
    ],
)
def test_settings_build_the_same_configuration_again(changes: dict) -> None:
    config = build(**changes)
    assert RunConfig.from_settings(config.settings(), where="here") == config
    through_yaml = yaml.safe_load(yaml.safe_dump(config.settings()))
    assert RunConfig.from_settings(through_yaml, where="here") == config


@given(st.floats(0.01, 0.98), st.floats(0, 0.98), st.floats(0.01, 0.98))
def test_shares_may_add_up_to_one_and_no_more(pool: float, reference: float, test: float) -> None:
    total = pool + reference + test
    if total <= 1:
        assert Split(pool=pool, reference=reference, test=test).pool == pool
    elif total > 1.001:
        with pytest.raises(ValueError, match="they may add up to at most 1"):
            Split(pool=pool, reference=reference, test=test)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"round": 3}, r"here: unknown key 'round'; known keys are data, .*Did you mean rounds\?"),
        (
            {"split": {"pol": 0.5}},
            r"unknown key 'split\.pol'; known keys are pool, .* Did you mean pool\?",
        ),
        (
            {"budget": {"epsilon": 1.0, "on_exhaused": "stop"}},
            r"unknown key 'budget\.on_exhaused'; known keys are epsilon, delta, on_exhausted, adaptive\. Did you mean",
        ),
        (
            {"method": {"name": "fedproto", "training": {"epoch": 1}}},
            r"unknown key 'training\.epoch'; .*Did you mean epochs\?",
        ),
        ({"method": "fedprot"}, r"method 'fedprot' is unknown; .*Did you mean fedproto\?"),
        ({"data": "cifar"}, "data 'cifar' is unknown; known are .*digits"),
        ({"encoder": "_base"}, "encoder '_base' is unknown"),
        ({"defense": None}, "defense is None; write a name"),
        ({"defense": {"name": "igpp", "epsilon": -1.0}}, r"epsilon=-1\.0: input should be greater than 0"),
        ({"defense": {"name": "igpp", "epsilon": 0}}, "epsilon=0: input should be greater than 0"),
        ({"defense": {"name": "igpp", "epsilon": math.nan}}, "epsilon=nan: input should be a finite number"),
        ({"defense": {"name": "igpp", "epsilon": math.inf}}, "epsilon=inf: input should be a finite number"),
        ({"defense": {"name": "igpp", "epsilon": True}}, "epsilon=True: a truth value is no valid"),
        ({"defense": {"name": "igpp", "epsilon": "much"}}, "epsilon='much': input should be a valid number"),
        (
            {"defense": {"name": "igpp", "epsilon": 1, "delta": 1.0}},
            r"delta=1\.0: input should be less than 1",
        ),
        ({"defense": {"name": "igpp", "epsilon": 1, "clip_norm": -2}}, "clip_norm=-2"),
        (
            {
                "defense": {
                    "name": "faulty_igpp",
                    "claims": {"epsilon": 1},
                    "fault": {"name": "low_noise", "factor": -0.5},
                }
            },
            r"fault low_noise: factor=-0\.5",
        ),
        ({"rounds": 0}, "rounds=0: input should be greater than or equal to 1"),
        ({"rounds": 2.5}, "rounds=2.5: input should be a valid integer"),
        ({"rounds": math.nan}, "rounds=nan: input should be a finite number"),
        ({"rounds": True}, "rounds=True: a truth value is no valid"),
        ({"rounds": None}, "rounds=None: input should be a valid integer"),
        ({"model": {"adapter": 0}}, r"model\.adapter=0: input should be greater"),
        ({"model": {"adapter": True}}, r"model\.adapter=True: a truth value"),
        ({"canaries": {"count": 1}}, r"canaries\.count=1: plant at least 2 canaries, or 0"),
        ({"canaries": {"count": -2}}, r"canaries\.count=-2: input should be greater"),
        ({"canaries": {"count": True}}, r"canaries\.count=True: a truth value"),
        ({"canaries": {"norm": math.nan}}, r"canaries\.norm=nan: input should be a finite number"),
        ({"canaries": {"norm": 0}}, r"canaries\.norm=0: input should be greater than 0"),
        ({"split": {"pool": math.nan}}, r"split\.pool=nan: input should be a finite number"),
        ({"split": {"pool": 1.0}}, r"split\.pool=1\.0: input should be less than 1"),
        ({"split": {"test": 0}}, r"split\.test=0: input should be greater than 0"),
        (
            {"split": {"pool": 0.7}},
            r"split=\{'pool': 0\.7\}: pool \+ reference \+ test is 1\.1; they may add up",
        ),
        ({"split": None}, "split=None"),
        (
            {"split": {"small_classes": "keep"}},
            r"split\.small_classes='keep': input should be 'refuse' or 'drop'",
        ),
        ({"precision": "fp16"}, "precision='fp16': input should be 'fp32' or 'bf16'"),
        ({"model": {"inside": True}}, "inside: true needs an adapter width; set adapter"),
        ({"model": {"hidden": [8, 0]}}, r"model\.hidden\.1=0: input should be greater than or equal to 1"),
        ({"model": {"hidden": [True]}}, r"model\.hidden\.0=True: input should be a valid integer"),
        ({"model": {"dropout": 1}}, r"model\.dropout=1: input should be less than 1"),
        ({"model": {"dropout": -0.1}}, r"model\.dropout=-0\.1: input should be greater than or equal to 0"),
        ({"model": {"hiden": [8]}}, r"unknown key 'model\.hiden'; .*Did you mean hidden\?"),
        ({"mixed": []}, r"mixed=\[\]"),
        ({"mixed": [{"model": {}}]}, r"mixed\.0\.encoder is missing; add it"),
        ({"mixed": [{"encoder": "usps"}]}, r"encoder 'usps' is unknown"),
        ({"mixed": [{"encoder": "usps_cnn", "head": 3}]}, r"unknown key 'mixed\.0\.head'"),
        ({"mixed": {"encoder": "usps_cnn"}}, "mixed="),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        build(**changes)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("section", ["data", "encoder", "method", "defense", "rounds"])
def test_a_missing_section_is_named(section: str) -> None:
    settings = {key: value for key, value in BASE.items() if key != section}
    with pytest.raises(InputError, match=f"here: {section} is missing; add it"):
        RunConfig.from_settings(settings, where="here")


def test_what_is_no_mapping_is_refused() -> None:
    with pytest.raises(InputError, match="here holds list; write sections"):
        RunConfig.from_settings([], where="here")


def test_sections_can_be_made_in_python() -> None:
    assert Canaries(count=0).count == 0
    assert Igpp(epsilon=2).epsilon == 2


# ---------------------------------------------------------------------- a file of cells and seeds


def test_a_file_without_cells_is_one_cell_named_after_it(path: Path) -> None:
    study = loaded(path, TEXT)
    assert list(study.cells) == ["study"]
    assert study.seeds == 1
    assert study.cells["study"] == build()


@pytest.mark.parametrize(
    ("name", "cell"),
    [("my study.yaml", "my-study"), (".hidden.yaml", "hidden"), ("ünï_1.2.yml", "ünï_1.2")],
)
def test_any_file_name_will_do(tmp_path: Path, name: str, cell: str) -> None:
    (tmp_path / "a folder").mkdir()
    assert list(loaded(tmp_path / "a folder" / name, TEXT).cells) == [cell]


def test_cells_change_the_base(path: Path) -> None:
    cells = {
        "a": None,
        "b": {"defense": {"epsilon": 8.0}},
        "c": {"defense": {"name": "none"}},
        "d": {"defense": "none", "rounds": 7},
        "e": {"method": {"training": {"epochs": 5}}},
    }
    study = loaded(path, yaml.safe_dump({**BASE, "cells": cells, "seeds": 3}, sort_keys=False))
    assert list(study.cells) == ["a", "b", "c", "d", "e"]
    assert study.seeds == 3
    assert study.cells["a"] == build()
    assert study.cells["b"] == build(defense={"name": "igpp", "epsilon": 8.0})
    assert study.cells["c"] == build(defense="none")
    assert study.cells["d"] == build(defense="none", rounds=7)
    assert study.cells["e"] == build(method={"name": "fedproto", "training": {"epochs": 5}})


@pytest.mark.parametrize(
    ("base", "changes", "result"),
    [
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 3}),
        ({"s": {"name": "x", "k": 1}}, {"s": {"k": 2}}, {"s": {"name": "x", "k": 2}}),
        ({"s": {"name": "x", "k": 1}}, {"s": {"name": "x", "l": 2}}, {"s": {"name": "x", "k": 1, "l": 2}}),
        ({"s": {"name": "x", "k": 1}}, {"s": {"name": "y", "l": 2}}, {"s": {"name": "y", "l": 2}}),
        ({"s": {"name": "x", "k": 1}}, {"s": "y"}, {"s": "y"}),
        ({"s": {"name": "x", "k": 1}}, {"s": "x"}, {"s": {"name": "x", "k": 1}}),
        ({"s": "x"}, {"s": {"k": 2}}, {"s": {"name": "x", "k": 2}}),
        ({"s": "x"}, {"s": {"name": "y", "k": 2}}, {"s": {"name": "y", "k": 2}}),
        ({"s": "x"}, {"s": "x"}, {"s": "x"}),
        ({"s": {"t": {"k": 1, "l": 1}}}, {"s": {"t": {"k": 2}}}, {"s": {"t": {"k": 2, "l": 1}}}),
        ({"s": {"k": [1, 2]}}, {"s": {"k": [3]}}, {"s": {"k": [3]}}),
        ({"s": {"k": 1}}, {"s": None}, {"s": None}),
        ({}, {"s": {"k": 1}}, {"s": {"k": 1}}),
    ],
)
def test_merging_follows_the_rules(base: dict, changes: dict, result: dict) -> None:
    before = repr(base), repr(changes)
    assert merged(base, changes) == result
    assert (repr(base), repr(changes)) == before


@pytest.mark.parametrize("seeds", [0, -1, True, 1.5, "3", None, math.nan, [1]])
def test_seeds_that_are_no_count_are_refused(path: Path, seeds: object) -> None:
    with pytest.raises(InputError, match=r"seeds=.*; give a whole number of at least 1"):
        loaded(path, yaml.safe_dump({**BASE, "seeds": seeds}))


def test_given_seeds_override_the_files(path: Path) -> None:
    text = yaml.safe_dump({**BASE, "seeds": 0})
    assert loaded(path, text, seeds=4).seeds == 4
    with pytest.raises(InputError, match="seeds=0; give a whole number"):
        load(path, seeds=0)


@pytest.mark.parametrize("name", ["a/b", "../a", "..", ".a", "a b", "a:b", "a\\b", "ä*", "a\n"])
def test_a_cell_name_that_cannot_name_a_folder_is_refused(path: Path, name: str) -> None:
    with pytest.raises(
        InputError, match=r"cell name .* cannot name a folder; use letters, digits, - _ and dots"
    ):
        loaded(path, yaml.safe_dump({**BASE, "cells": {name: None}}))


@pytest.mark.parametrize("name", ["a" * 201, "ä" * 101])
def test_a_cell_name_too_long_for_a_folder_is_refused(path: Path, name: str) -> None:
    with pytest.raises(
        InputError, match=r"cell name .* has 20\d bytes and names a folder; use at most 200\."
    ):
        loaded(path, yaml.safe_dump({**BASE, "cells": {name: None}}))
    assert len(loaded(path, yaml.safe_dump({**BASE, "cells": {name[:100]: None}})).cells) == 1


def test_a_file_of_an_audit_is_said_to_be_one() -> None:
    with pytest.raises(
        InputError, match=r"hijack\.yaml holds attacks, .* `privkit audit --run RUNS --config"
    ):
        load(CONFIGS / "hijack.yaml")


def test_a_file_of_split_learning_is_said_to_be_one() -> None:
    with pytest.raises(
        InputError, match=r"holds steps, .* split learning; give it to `privkit hijack .*fsha\.yaml`"
    ):
        load(CONFIGS / "fsha.yaml")


@pytest.mark.parametrize("kind", [RunConfig, FinetuneConfig])
def test_a_key_of_the_other_federation_is_unknown_and_its_command_is_not_named(kind: Any, path: Path) -> None:
    path.write_text("method: fedproto\ntuning: lora\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"unknown key '(method|tuning)'"):
        load_as(kind, path)


def test_a_server_that_does_not_fit_its_method_is_refused_without_all_settings(path: Path) -> None:
    text = yaml.safe_dump(changed(method="local_only", server="stalling_prototypes"))
    with pytest.raises(
        InputError, match=r"study\.yaml: server stalling_prototypes answers with prototypes, [^=]*$"
    ):
        loaded(path, text)


def test_cells_of_the_same_name_are_refused(path: Path) -> None:
    with pytest.raises(InputError, match="cell name '1' appears twice; rename one"):
        loaded(path, TEXT + "cells: {1: {}, '1': {rounds: 3}}")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("[a, b]", r"cells is \['a', 'b'\]; write one name per cell"),
        ("7", "cells is 7"),
        ("", "cells is None; write one name per cell"),
        ("{}", r"cells is \{\}; write one name"),
        ("[]", r"cells is \[\]; write one name"),
        ("''", "cells is ''; write one name"),
        ("{no: {}}", "cells: YAML reads a cell's name as False; write it in quotes"),
        ("{on: {}, a: {}}", "YAML reads a cell's name as True"),
        ("{null: {}}", "YAML reads a cell's name as None"),
        ("{~: {}}", "YAML reads a cell's name as None"),
        ("{'': {}}", "cells: a cell's name is empty; give it one"),
        ("{a: []}", r"cell a is \[\]; write what the cell changes"),
        ("{a: false}", "cell a is False; write what the cell changes"),
        ("{a: ''}", "cell a is ''; write what the cell changes"),
        ("{a: 5, b: }", "cell a is 5; write what the cell changes"),
    ],
)
def test_cells_that_are_no_mapping_are_refused(path: Path, cells: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        loaded(path, f"{TEXT}cells: {cells}")


def test_a_mistake_in_a_cell_names_the_cell(path: Path) -> None:
    text = TEXT + "cells: {fine: {}, wrong: {defense: {epsilon: -1}}}"
    with pytest.raises(InputError, match=r"study\.yaml cell wrong: defense igpp: epsilon=-1"):
        loaded(path, text)


def test_a_mistaken_section_is_found_with_cells_and_seeds_among_the_known(path: Path) -> None:
    with pytest.raises(
        InputError, match=r"unknown key 'seed'; known keys are data, .*, cells, seeds\. Did you mean seeds\?"
    ):
        loaded(path, TEXT + "seed: 3")


@pytest.mark.parametrize(
    "twice",
    [
        TEXT + "rounds: 3",
        TEXT.replace("epsilon: 1.0", "epsilon: 1.0\n  epsilon: 8.0"),
        TEXT + "cells: {a: {rounds: 1}, a: {rounds: 2}}",
        TEXT + "cells: {a: {split: {pool: 0.5, pool: 0.6}}}",
    ],
)
def test_a_key_that_appears_twice_is_refused(path: Path, twice: str) -> None:
    with pytest.raises(InputError, match=r"study\.yaml is not valid YAML: key '.*' appears twice.*line \d+"):
        loaded(path, twice)


def test_anchors_and_merge_keys_work(path: Path) -> None:
    text = TEXT.replace("defense:", "defense: &one") + (
        "cells:\n"
        "  a: {defense: &two {<<: *one, epsilon: 4.0}}\n"
        "  b: {defense: {<<: *two, epsilon: 8.0, clip_norm: 2.0}}\n"
    )
    cells = loaded(path, text).cells
    assert cells["a"].defense == Igpp(epsilon=4.0)
    assert cells["b"].defense == Igpp(epsilon=8.0, clip_norm=2.0)


def test_a_number_in_scientific_notation_is_a_number(path: Path) -> None:
    study = loaded(path, TEXT.replace("epsilon: 1.0", "epsilon: 1.0\n  delta: 1e-6"))
    assert study.cells["study"].defense == Igpp(epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no settings; write sections"),
        (b"- a\n- b\n", "holds no settings"),
        (b"just text", "holds no settings"),
        (b"a: [1", "is not valid YAML"),
        (b"a: b: c", "is not valid YAML"),
        (b"\xff\xfe\x00", "is not valid YAML"),
        (b"a: !!python/object/apply:os.system [ls]", "is not valid YAML"),
        (b"? [1, 2]\n: 3\n", "is not valid YAML"),
    ],
)
def test_an_unreadable_file_is_refused_in_one_sentence(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"study\.yaml {message}") as refused:
        load(path)
    assert "\n" not in str(refused.value)


def test_a_missing_file_or_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml does not exist; give a configuration file"):
        load(tmp_path / "nowhere.yaml")
    with pytest.raises(InputError, match=r"cannot be read .*; give a configuration file"):
        load(tmp_path)


@pytest.mark.parametrize(
    "path",
    # those of an audit, and of a command that trains no federation, are tested beside what reads them
    sorted(
        p
        for p in CONFIGS.rglob("*.yaml")
        if "attacks:" not in p.read_text(encoding="utf-8") and p.stem != "fsha"
    ),
    ids=lambda p: p.stem,
)
def test_configurations_that_come_with_privkit_are_valid(path: Path) -> None:
    kind = FinetuneConfig if tunes(path) else RunConfig
    for config in load_as(kind, path).cells.values():
        assert kind.from_settings(config.settings(), where=str(path)) == config


def test_a_misspelt_key_is_named_rather_than_the_one_it_leaves_missing(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump({**BASE, "defense": {"name": "igpp", "epsilom": 1.0}}), encoding="utf-8")
    with pytest.raises(InputError, match=r"unknown key 'epsilom'.*Did you mean epsilon\?"):
        load(path)
