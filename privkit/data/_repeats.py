"""A record that occurs twice could be a member and a non-member at once."""

from privkit.data._base import Domain
from privkit.errors import InputError


def refuse_repeats(domains: tuple[Domain, ...]) -> None:
    """Refuse two records with the same image: one could be a member and the other a non-member.

    Raises:
        InputError: two images are equal, in one domain or in two.
    """
    seen: dict[bytes, str] = {}
    for domain in domains:
        for i, image in enumerate(domain.records):
            here = f"{domain.name}[{i}]"
            first = seen.setdefault(image.tobytes(), here)
            if first != here:
                raise InputError(f"{here} is the same image as {first}; leave one of them out.")
