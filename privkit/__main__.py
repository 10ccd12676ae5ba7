"""``python -m privkit``."""

from privkit.cli import main

main()
