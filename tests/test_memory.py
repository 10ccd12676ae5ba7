"""Freed memory stays in the process, where the C library can be told so."""

import ctypes
import os
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import numpy as np
from privkit.train.memory import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
for _ in range(3):
    np.ones(1 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    pieces = [np.ones(1 << 20) for _ in range(8)]
    del pieces
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


HAS_MALLOPT = os.name == "posix" and hasattr(ctypes.CDLL(None), "mallopt")


@pytest.mark.skipif(not HAS_MALLOPT, reason="the C library has no mallopt")
def test_memory_that_was_freed_is_not_fetched_again():
    assert faults("keep") < faults("give back") / 4
