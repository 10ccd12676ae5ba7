"""Which attacks an audit runs: all with their default settings, or as a file has them."""

from collections.abc import Sequence
from pathlib import Path

from attacks._base import AbstractAttack
from attacks.hijack._base import AbstractHijack
from privkit import plug
from privkit.document import document
from privkit.errors import InputError

Attack = AbstractAttack | AbstractHijack
PACKAGES = ("attacks.membership", "attacks.model", "attacks.gradient", "attacks.canary", "attacks.hijack")


def every_attack() -> list[Attack]:
    """Return every attack there is, with its default settings."""
    return [_built(name) for package in PACKAGES for name in plug.names(package)]


def configured(path: Path) -> list[Attack]:
    """Return every attack, with the settings that a YAML file gives some of them.

    The file has one section, ``attacks``: a list of names, each with its settings beside it. An attack that is
    not in it keeps its defaults.

    Raises:
        InputError: the file, an attack or a setting is unknown; or two attacks have one label, which is what their rows
            are called by.
    """
    settings = document(path, known=("attacks",)).get("attacks")
    if not isinstance(settings, list) or not settings:
        raise InputError(
            f"{path}: attacks is {settings!r}; list attacks, each as {{name: ..., its settings}}."
        )
    try:
        given = [_built(one) for one in settings]
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    _refuse_twice(given, path)
    named = {attack.name for attack in given}
    return [*(attack for attack in every_attack() if attack.name not in named), *given]


def _refuse_twice(given: Sequence[Attack], path: Path) -> None:
    seen = set[str]()
    for attack in given:
        if attack.label in seen:
            raise InputError(f"{path}: attack {attack.label} stands there twice; keep one.")
        seen.add(attack.label)


def _built(settings: object) -> Attack:
    name = settings.get("name") if isinstance(settings, dict) else settings
    if not isinstance(name, str):
        raise InputError(
            f"attacks has {settings!r}, which names no attack; write cosine, say, or {{name: cosine, tier: client}}."
        )
    for package in PACKAGES:
        if name in plug.names(package):
            found = plug.build(package, settings)
            assert isinstance(found, AbstractAttack | AbstractHijack)
            return found
    known = sorted(known for package in PACKAGES for known in plug.names(package))
    raise InputError(plug.unknown("attack", name, known=known))
