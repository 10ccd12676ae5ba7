"""Published lists that say which pictures of a domain are for training and which are held out."""

from collections.abc import Iterable
from dataclasses import dataclass

from privkit.data._domain_folders import DomainFolder
from privkit.data._folders import Picture
from privkit.data._unread import refuse_bad


@dataclass(frozen=True)
class Listed:
    """One entry of a list.

    Attributes:
        name: path of the picture below the domain's folder, with ``/``.
        label: number of its class, from 0; what is no class is another number.
        said: the label as the list gives it, for messages.
    """

    name: str
    label: int
    said: str


def divided(
    domain: list[Picture], train: Iterable[Listed], held_out: Iterable[Listed], *, skip_bad: bool
) -> DomainFolder:
    """Return a domain whose test part is what the other lists name and the training list does not.

    The published test list of PACS names every picture of a domain, its training pictures too: it is meant for
    domains that were not trained on. What is left without these is held out within the domain. Of its list of held-out
    paintings, one entry has label 0, where labels begin at 1.

    Args:
        domain: the pictures of its class folders.
        train: the training list.
        held_out: the other lists, one after the other.
        skip_bad: whether pictures whose entries are wrong, or that are in no list, are left out, with a warning.

    Raises:
        InputError: an entry names no picture or another class than its folder, or a picture is in no list.
    """
    known = {_below_domain(picture): picture for picture in domain}
    train, held_out = list(train), list(held_out)
    trained, listed = ({entry.name for entry in entries} for entries in (train, [*train, *held_out]))
    bad = {e.name: reason for e in [*train, *held_out] if (reason := _wrong(e, known)) is not None}
    bad |= {name: "it is in no list" for name in known if name not in listed}
    named = {known[name].name if name in known else name: reason for name, reason in bad.items()}
    refuse_bad(named, total=len(known), skip_bad=skip_bad)
    sound = [(name, picture) for name, picture in known.items() if name not in bad]
    return DomainFolder(
        [picture for name, picture in sound if name in trained],
        [picture for name, picture in sound if name not in trained],
    )


def _below_domain(picture: Picture) -> str:
    return picture.name.partition("/")[2]


def _wrong(entry: Listed, known: dict[str, Picture]) -> str | None:
    """Return what is wrong with an entry."""
    picture = known.get(entry.name)
    if picture is None:
        return "a list names it, but it is not there"
    return None if picture.label == entry.label else f"a list gives it label {entry.said}, its folder another"
