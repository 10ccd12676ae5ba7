"""The command line: one file per command, imported when ``privkit`` starts, heavy parts when it runs."""

import os
import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; a refusal is one sentence on standard error and exit code 2."""
    # Many small matrix products: with a second BLAS thread they mostly wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from privkit.clash import refuse_clash

    try:
        refuse_clash()
        from privkit.cli.app import app

        app()
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:
            print("privkit: stopped; run the same command again to go on", file=sys.stderr)  # noqa: T201
        raise
    except (ValueError, OSError) as error:
        if "--debug" in sys.argv:
            raise
        print(f"privkit: {' '.join(str(error).split())}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        print(  # noqa: T201
            f"privkit: {type(error).__name__}: {' '.join(str(error).split())}; a file may be damaged, or this is a "
            "bug: --debug shows where",
            file=sys.stderr,
        )
        sys.exit(2)
