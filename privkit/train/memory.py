"""What the C library does with memory that is freed."""

import ctypes
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_LARGEST = 32 << 20
"""The most that glibc takes for a threshold of its maps."""


def keep_freed_memory() -> None:
    """Keep freed memory in the process, where the C library is glibc; elsewhere, do nothing.

    A step's gradients and activations are a few megabytes that the next step needs again. Given back to the system,
    they come back page by page, zeroed: on small clients that takes as long as the arithmetic. No result changes.

    Source: mallopt(3), M_TRIM_THRESHOLD and M_MMAP_THRESHOLD.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
