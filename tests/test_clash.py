"""Somebody else's package under one of our names is refused; our own is not, wherever it lies."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from privkit import clash

HOME = Path(clash.__file__).resolve().parents[1]
CODE = """
from privkit.clash import owners, refuse_clash, replaced
from privkit.errors import InputError
print(replaced())
try:
    refuse_clash()
except InputError as error:
    print(error)
"""


def asked(folder: Path) -> list[str]:
    """Return what a new Python finds when a folder comes before ours."""
    path = os.pathsep.join((str(folder), str(HOME)))
    done = subprocess.run(
        [sys.executable, "-P", "-c", CODE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return done.stdout.splitlines()


def test_our_own_packages_are_no_clash(tmp_path: Path) -> None:
    assert asked(tmp_path) == ["[]"]


def test_our_own_packages_through_a_link_are_no_clash(tmp_path: Path) -> None:
    (tmp_path / "reports").symlink_to(HOME / "reports")
    assert asked(tmp_path) == ["[]"]


@pytest.mark.parametrize("content", [b'"""Reports of somebody else."""', b"# \xe9\xff latin\n", b""])
def test_a_package_from_elsewhere_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "__init__.py").write_bytes(content)
    names, sentence = asked(tmp_path)
    assert names == "['reports']"
    assert "the package reports that Python finds is not privkit's (it comes from another folder)" in sentence
    assert "pip install --force-reinstall privkit-audit" in sentence


def test_a_package_written_over_ours_is_found(tmp_path: Path) -> None:
    home = tmp_path / "site-packages"
    for name in clash.NAMES:
        (home / name).mkdir(parents=True)
        (home / name / "__init__.py").write_text('"""privkit\'s own."""')
    (home / "accountant" / "__init__.py").write_bytes(b"# \xff money")
    for name in ("clash.py", "errors.py"):
        (home / "privkit" / name).write_bytes((HOME / "privkit" / name).read_bytes())
    names, sentence = asked(home)
    assert names == "['accountant']"
    assert "the package accountant" in sentence


def test_other_distributions_of_our_names_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"privkit": ["privkit-audit"], "reports": ["privkit-audit", "reports"], "numpy": ["numpy"]}
    monkeypatch.setattr("importlib.metadata.packages_distributions", lambda: found)
    assert clash.owners() == {"reports": ["reports"]}
