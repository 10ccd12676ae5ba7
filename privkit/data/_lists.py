"""Published lists that say which pictures of a domain are for training and which are held out."""

from collections.abc import Iterable
from dataclasses import dataclass

from privkit.data._folders import Picture, composed
from privkit.data._unread import UnreadDomain, of_pictures


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
    name: str, domain: list[Picture], train: Iterable[Listed], held_out: Iterable[Listed]
) -> UnreadDomain:
    """Return a domain whose test part is what the other lists name and the training list does not.

    The published test list of PACS names every picture of a domain, its training pictures too: it is meant for
    domains that were not trained on. What is left without these is held out within the domain. Of its list of held-out
    paintings, one entry has label 0, where labels begin at 1.

    Args:
        name: the domain's.
        domain: the pictures of its class folders.
        train: the training list.
        held_out: the other lists, one after the other.

    Returns:
        The domain without pictures whose entries give them another class than their folder, or that are in no list:
        these are named beside it, as are entries that name no picture.
    """
    known = {_below_domain(picture): picture for picture in domain}
    train, held_out = list(train), list(held_out)
    trained, listed = (
        {composed(entry.name) for entry in entries} for entries in (train, [*train, *held_out])
    )
    wrong = {
        composed(e.name): f"a list gives it label {e.said}, its folder another"
        for e in [*train, *held_out]
        if (picture := known.get(composed(e.name))) is not None and picture.label != e.label
    }
    wrong |= {below: "it is in no list" for below in known if below not in listed}
    sound = [(below, picture) for below, picture in known.items() if below not in wrong]
    return UnreadDomain(
        name,
        of_pictures(picture for below, picture in sound if below in trained),
        of_pictures(picture for below, picture in sound if below not in trained),
        {known[below].name: reason for below, reason in wrong.items()},
        tuple(
            below
            for below in dict.fromkeys(e.name for e in [*train, *held_out])
            if composed(below) not in known
        ),
    )


def _below_domain(picture: Picture) -> str:
    return picture.name.partition("/")[2]
