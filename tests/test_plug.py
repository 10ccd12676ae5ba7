"""Plug-ins: found by file name, one per file, frozen, and unknown settings are refused with a way out."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from privkit import plug
from privkit.errors import InputError

GOOD = """
from pydantic import BaseModel, Field, model_validator
from privkit.plug import Plugin, Settings

class Inner(Settings):
    rate: float = 0.5

class Helper(BaseModel):
    pass

class Good(Plugin):
    size: int = Field(default=1, ge=1)
    width: int | None = None
    on: bool = False
    inner: Inner = Inner()

    @model_validator(mode="after")
    def _narrow(self):
        if self.size == 13 and self.on:
            raise ValueError("size 13 is never on; take another")
        return self
"""
FILES = {
    "__init__.py": "",
    "good.py": GOOD,
    "borrowed.py": "from shapes.good import Good\nclass Borrowed(Good): pass",
    "two.py": "from privkit.plug import Plugin\nclass A(Plugin): pass\nclass B(Plugin): pass",
    "empty.py": "from shapes.good import Good",
    "broken.py": "raise RuntimeError('imported')",
    "_base.py": "raise RuntimeError('imported')",
    "notes.txt": "",
    "folder/__init__.py": "",
}


@pytest.fixture(scope="module", autouse=True)
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A package of plug-ins."""
    root = tmp_path_factory.mktemp("plugins")
    for name, text in FILES.items():
        path = root / "shapes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root)
        yield "shapes"
    for name in [name for name in sys.modules if name.partition(".")[0] == "shapes"]:
        del sys.modules[name]


def test_names_are_those_of_public_files_and_nothing_is_imported() -> None:
    assert plug.names("shapes") == ["borrowed", "broken", "empty", "good", "two"]
    assert "shapes.broken" not in sys.modules


def test_a_plug_in_is_built_from_its_name_and_settings() -> None:
    for settings in ("good", {"name": "good"}, {"name": "good", "size": 1}):
        assert plug.build("shapes", settings).settings() == {
            "name": "good",
            "size": 1,
            "width": None,
            "on": False,
            "inner": {"rate": 0.5},
        }


def test_settings_build_the_same_plug_in_again() -> None:
    built = plug.build("shapes", {"name": "good", "size": 3, "width": 2, "on": True, "inner": {"rate": 2}})
    again = plug.build("shapes", built.settings())
    assert again == built
    assert hash(again) == hash(built)


def test_a_plug_in_is_named_after_its_own_file() -> None:
    assert plug.build("shapes", "borrowed").name == "borrowed"
    assert plug.find("shapes", "borrowed").__name__ == "Borrowed"


@pytest.mark.parametrize(("name", "count"), [("two", 2), ("empty", 0)])
def test_a_file_defines_exactly_one_plug_in(name: str, count: int) -> None:
    with pytest.raises(TypeError, match=rf"shapes\.{name} defines {count} plug-in classes; .* defines one"):
        plug.find("shapes", name)


def test_every_yields_each_plug_in_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "few").mkdir()
    for name in ("b", "a"):
        text = f"from privkit.plug import Plugin\nclass {name.upper()}(Plugin): pass"
        (tmp_path / "few" / f"{name}.py").write_text(text)
    (tmp_path / "few" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert [(name, cls.__name__) for name, cls in plug.every("few")] == [("a", "A"), ("b", "B")]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("god", r"shape 'god' is unknown; known are borrowed, .*\. Did you mean good\?"),
        ("t", r"shape 't' is unknown; .*\. Did you mean two\?"),
        ("b", r"shape 'b' is unknown; known are [^?]*\.$"),
        ("zzz", r"shape 'zzz' is unknown; known are [^?]*\.$"),
        ("_base", "shape '_base' is unknown"),
        ("folder", "shape 'folder' is unknown"),
        ("good.Good", "is unknown"),
        (None, "shape is None; write a name, or name: with its settings below it"),
        (["good"], r"shape is \['good'\]; write a name"),
        ({"size": 1}, r"shape is \{'size': 1\}; write a name"),
        ({"name": 3}, r"shape is \{'name': 3\}; write a name"),
        ({"name": "good", "siz": 1}, r"unknown key 'siz'; known keys are size, .*\. Did you mean size\?"),
        (
            {"name": "good", "inner": {"rat": 1}},
            r"unknown key 'inner\.rat'; known keys are rate\. Did you mean rate\?",
        ),
        ({"name": "good", "inner": {"x": 1}}, r"unknown key 'inner\.x'; known keys are rate\.$"),
        ({"name": "good", 7: 1}, "key 7 is no name; does a number hold a comma"),
        ({"name": "good", "size": 0}, "shape good: size=0: input should be greater than or equal to 1"),
        ({"name": "good", "size": 13, "on": True}, r"^shape good: size 13 is never on; take another\.$"),
        ({"name": "good", "size": 1.5}, "size=1.5: input should be a valid integer"),
        ({"name": "good", "size": True}, "size=True: a truth value is no valid integer or number; give one"),
        ({"name": "good", "width": False}, "width=False: a truth value is no valid integer"),
        ({"name": "good", "inner": {"rate": True}}, r"inner\.rate=True: a truth value"),
        (
            {"name": "good", "inner": {"rate": float("nan")}},
            r"inner\.rate=nan: input should be a finite number",
        ),
        (
            {"name": "good", "inner": {"rate": float("inf")}},
            r"inner\.rate=inf: input should be a finite number",
        ),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(settings: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plug.build("shapes", settings)


def test_a_plug_in_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        plug.build("shapes", "good").size = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(InputError, match="defense igpp: epsilon is missing; add it"):
        plug.build("privkit.defenses", "igpp")
