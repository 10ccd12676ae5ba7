"""Files that come with privkit: used only if they are, byte for byte, the published ones."""

import hashlib
from pathlib import Path

from privkit.errors import InputError


def read(path: Path, *, sha256: str) -> bytes:
    """Return the bytes of a shipped file.

    Args:
        path: the file, inside an installed privkit package.
        sha256: what its bytes must hash to, in hexadecimal.

    Raises:
        InputError: the file is missing, or its bytes are not the published ones.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path} is missing; install privkit again.") from None
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise InputError(
            f"{path} is damaged (sha256 {found[:12]}…, wanted {sha256[:12]}…); install privkit again."
        )
    return content
