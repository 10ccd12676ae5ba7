"""The ledger: every change and every cut is found, and a killed writer leaves no trace."""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import events
from privkit import ledger
from privkit.errors import InputError
from privkit.ledger import Anchor
from tests import draw

ENTRIES: list[dict[str, Any]] = [
    {"round": 0, "client": 0, "event": {"event": "PureDP", "epsilon": 1e-05}},
    {"round": 0, "client": 1, "event": {"event": "NonPrivate", "reason": "ε is ∞\n\x1f"}},
    {"round": 1, "client": 0, "event": {"event": "Gaussian", "noise_multiplier": 2.5e300}},
]

entries = st.lists(
    st.fixed_dictionaries({"round": st.integers(0, 9), "event": draw.events().map(events.to_dict)}),
    max_size=4,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@settings(max_examples=15)
@given(entries, entries)
def test_read_returns_what_was_appended_in_one_call_or_two(first: list, second: list) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder, "one"), Path(folder, "two")
        anchor = ledger.append(one, first + second, Anchor())
        again = ledger.append(two, second, ledger.append(two, first, Anchor()))
        assert ledger.read(one, anchor) == first + second
        assert (again, two.read_bytes()) == (anchor, one.read_bytes())


def test_each_line_holds_the_hash_of_the_line_before(path: Path) -> None:
    anchor = ledger.append(path, ENTRIES, Anchor())
    previous = hashlib.sha256(b"privkit ledger 1").hexdigest()
    for line, entry in zip(path.read_text(encoding="utf-8").splitlines(), ENTRIES, strict=True):
        plain = json.loads(line)
        head = plain.pop("hash")
        assert plain == {**entry, "previous": previous}
        hashed = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert head == hashlib.sha256(hashed.encode()).hexdigest()
        previous = head
    assert anchor == Anchor(lines=3, bytes=path.stat().st_size, head=previous)


def refused(path: Path, data: bytes, anchor: Anchor) -> bool:
    path.write_bytes(data)
    try:
        ledger.read(path, anchor)
    except InputError as error:
        return str(path) in str(error)
    return False


def test_any_flipped_byte_is_found(path: Path) -> None:
    anchor = ledger.append(path, [{"epsilon": 1e-05}, {"reason": "ε\x1f"}], Anchor())
    sound = path.read_bytes()
    for place in range(len(sound)):
        for mask in (0x07, 0x20):  # a newline becomes a carriage return, a letter changes its case
            changed = bytearray(sound)
            changed[place] ^= mask
            assert refused(path, bytes(changed), anchor), (place, mask)
    assert not refused(path, sound, anchor)


@settings(max_examples=50)
@given(st.data())
def test_any_other_byte_anywhere_is_found(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger")
        anchor = ledger.append(path, ENTRIES, Anchor())
        changed = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(changed) - 1))
        before = changed[place]
        changed[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != before))
        assert refused(path, bytes(changed), anchor)


def test_a_change_that_json_does_not_see_is_found(path: Path) -> None:
    anchor = ledger.append(path, ENTRIES, Anchor())
    sound = path.read_bytes()
    for old, new in ((b"\n", b"\r"), (b"1e-05", b"1E-05"), (rb"\u001f", rb"\u001F"), (b"}\n", b"} ")):
        assert old in sound
        assert refused(path, sound.replace(old, new), anchor), old


def test_a_cut_tail_is_found_at_any_length(path: Path) -> None:
    anchor = ledger.append(path, ENTRIES, Anchor())
    sound = path.read_bytes()
    lengths = {*range(0, len(sound), 7), *range(len(sound) - 70, len(sound))}
    assert all(refused(path, sound[:n], anchor) for n in lengths)
    path.write_bytes(sound[:-1])
    with pytest.raises(InputError, match=r"was cut: it holds 2 whole lines where run\.json anchors 3"):
        ledger.read(path, anchor)


def test_swapped_dropped_and_doubled_lines_are_found(path: Path) -> None:
    anchor = ledger.append(path, ENTRIES, Anchor())
    a, b, c = path.read_bytes().splitlines(keepends=True)
    for lines in ([b, a, c], [a, c, b], [a, a, c], [a, b], [b, c], [a, b, b]):
        assert refused(path, b"".join(lines), anchor)


def test_a_rewritten_chain_does_not_end_where_the_anchor_says(path: Path) -> None:
    anchor = ledger.append(path, ENTRIES, Anchor())
    path.unlink()
    forged = ledger.append(path, [{**ENTRIES[0], "client": 7}, *ENTRIES[1:]], Anchor())
    assert forged.bytes == anchor.bytes
    with pytest.raises(InputError, match=r"does not end where run\.json says"):
        ledger.read(path, anchor)


def test_a_changed_line_is_named(path: Path) -> None:
    anchor = ledger.append(path, ENTRIES, Anchor())
    path.write_bytes(path.read_bytes().replace(b'"client":1', b'"client":2'))
    with pytest.raises(InputError, match=r"was changed: line 2 .* restore it or train again"):
        ledger.read(path, anchor)


@settings(max_examples=20)
@given(tail=st.binary(max_size=80))
def test_an_unanchored_tail_is_no_part_of_the_ledger_and_is_dropped(tail: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        killed, whole = Path(folder, "killed"), Path(folder, "whole")
        anchor = ledger.append(killed, ENTRIES[:1], Anchor())
        killed.write_bytes(killed.read_bytes() + tail)
        assert ledger.read(killed, anchor) == ENTRIES[:1]
        after = ledger.append(killed, ENTRIES[1:], anchor)
        assert after == ledger.append(whole, ENTRIES, Anchor())
        assert killed.read_bytes() == whole.read_bytes()


def test_a_whole_round_beyond_the_anchor_is_dropped_too(path: Path) -> None:
    anchor = ledger.append(path, ENTRIES[:1], Anchor())
    ledger.append(path, [*ENTRIES, *ENTRIES], anchor)
    after = ledger.append(path, ENTRIES[1:2], anchor)
    assert ledger.read(path, after) == ENTRIES[:2]
    assert path.stat().st_size == after.bytes


def test_nothing_is_appended_to_a_ledger_that_was_cut_or_lost(path: Path) -> None:
    anchor = ledger.append(path, ENTRIES, Anchor())
    short = path.read_bytes()[:-5]
    path.write_bytes(short)
    with pytest.raises(InputError, match="was cut"):
        ledger.append(path, ENTRIES, anchor)
    assert path.read_bytes() == short
    path.unlink()
    with pytest.raises(InputError, match="was cut: it holds 0 bytes"):
        ledger.append(path, ENTRIES, anchor)
    assert not path.exists()
    with pytest.raises(InputError, match=r"is missing, but run\.json anchors 3 lines"):
        ledger.read(path, anchor)


def test_no_entries_add_nothing(path: Path) -> None:
    assert ledger.append(path, [], Anchor()) == Anchor()
    assert path.read_bytes() == b""
    assert ledger.read(path, Anchor()) == []


def test_anchor_comes_back_from_plain_values(path: Path) -> None:
    anchor = ledger.append(path, ENTRIES, Anchor())
    assert Anchor.from_dict(json.loads(json.dumps(anchor.to_dict()))) == anchor
    for name, bad in (("lines", -1), ("bytes", 1.5), ("lines", True), ("bytes", "7")):
        with pytest.raises(InputError, match=name):
            Anchor.from_dict({**anchor.to_dict(), name: bad})


# ---------------------------------------------------------------------- merging

SITES: list[list[dict[str, Any]]] = [
    [{"round": t, "client": m, "event": {"event": "PureDP", "epsilon": 1.0 + t + m}} for t in range(3)]
    for m in range(3)
]


def sites(folder: Path) -> dict[Path, Anchor]:
    """Write the ledger of each site by itself."""
    paths = [folder / f"site-{m}.jsonl" for m in range(3)]
    return {path: ledger.append(path, lines, Anchor()) for path, lines in zip(paths, SITES, strict=True)}


def test_merged_ledgers_are_the_chain_that_one_site_would_have_written(tmp_path: Path) -> None:
    anchor = ledger.merge(tmp_path / "all.jsonl", sites(tmp_path))
    ordered = sorted((entry for site in SITES for entry in site), key=lambda e: (e["round"], e["client"]))
    assert ledger.append(tmp_path / "one.jsonl", ordered, Anchor()) == anchor
    assert (tmp_path / "all.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()


@settings(max_examples=10)
@given(order=st.permutations(range(3)))
def test_the_order_of_sites_does_not_matter(order: list[int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = list(sites(folder).items())
        first = ledger.merge(folder / "one", dict(sources))
        assert ledger.merge(folder / "two", dict(sources[i] for i in order)) == first


def test_a_line_that_two_sites_hold_is_kept_once(tmp_path: Path) -> None:
    sources = sites(tmp_path)
    both = tmp_path / "both.jsonl"
    sources[both] = ledger.append(both, [*SITES[0], SITES[1][0]], Anchor())
    assert ledger.merge(tmp_path / "all", sources).lines == 9


def test_two_lines_of_one_client_and_round_are_refused_by_name(tmp_path: Path) -> None:
    sources, other = sites(tmp_path), tmp_path / "other.jsonl"
    sources[other] = ledger.append(other, [{**SITES[2][1], "event": {"event": "NonPrivate"}}], Anchor())
    with pytest.raises(
        InputError, match=r"site-2\.jsonl and .*other\.jsonl hold different lines of client 2 in round 1"
    ):
        ledger.merge(tmp_path / "all", sources)
    assert not (tmp_path / "all").exists()


def test_a_flipped_byte_or_a_cut_tail_of_any_site_is_found_before_merging(tmp_path: Path) -> None:
    sources = sites(tmp_path)
    for path in sources:
        sound = path.read_bytes()
        for place in range(0, len(sound), 17):
            path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
            with pytest.raises(InputError, match=path.name):
                ledger.merge(tmp_path / "all", sources)
        path.write_bytes(sound[:-1])
        with pytest.raises(InputError, match="was cut"):
            ledger.merge(tmp_path / "all", sources)
        path.write_bytes(sound)
    assert not (tmp_path / "all").exists()


def test_a_flipped_byte_or_a_cut_tail_of_a_merged_ledger_is_found(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    anchor = ledger.merge(path, sites(tmp_path))
    sound = path.read_bytes()
    for place in range(0, len(sound), 13):
        assert refused(path, sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :], anchor)
    assert all(refused(path, sound[:n], anchor) for n in range(0, len(sound), 41))
    assert not refused(path, sound, anchor)


def test_a_merged_ledger_overwrites_nothing_and_holds_releases_only(tmp_path: Path) -> None:
    sources, target = sites(tmp_path), tmp_path / "all"
    target.write_bytes(b"mine")
    with pytest.raises(InputError, match="exists; merge into a new file"):
        ledger.merge(target, sources)
    assert target.read_bytes() == b"mine"
    odd = tmp_path / "odd"
    with pytest.raises(InputError, match="odd holds a line without a round and a client"):
        ledger.merge(tmp_path / "new", {odd: ledger.append(odd, [{"round": 1}], Anchor())})
