"""``python -m benchmarks [SECTION ...] [--json FILE]``: run the rows and print the table."""

import argparse
import importlib
import json
import os
import sys
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before numpy reads them

# one file each, its rows in ROWS
SECTIONS = ["accounting", "training", "overhead", "judging", "membership", "gradient", "orthogonal"]


def main() -> int:
    """Run the sections that were asked for; exit 1 if a row is void or misses what it must reach."""
    from benchmarks.protocol import Result, load, wait_for_quiet
    from benchmarks.table import line, rule

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; default all"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    options = parser.parse_args()
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"section {unknown[0]!r} is unknown; known are {', '.join(SECTIONS)}")

    print(f"{load()}; matrix probe varies by {wait_for_quiet():.0%}")
    print(rule())
    results: list[Result] = []
    for section in options.sections or SECTIONS:
        for row in importlib.import_module(f"benchmarks.{section}").ROWS:
            found = row()
            results += found
            print(*map(line, found), sep="\n", flush=True)
    print(load())
    if options.json:
        options.json.write_text(json.dumps([result.to_dict() for result in results], indent=1) + "\n")
    return int(any(result.verdict in ("VOID", "MISSED") for result in results))


if __name__ == "__main__":
    sys.exit(main())
