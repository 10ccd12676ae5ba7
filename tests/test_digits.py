"""The stored digits: what is in them, how they are drawn, and what is refused."""

import hashlib
import itertools
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pydantic import ValidationError
from sklearn.datasets import load_digits

from privkit import plug
from privkit.data import digits
from privkit.data._base import Domain
from privkit.data._render import HALF_WIDTH, MARGIN, SIDE, draw_strokes, stretch, upscale
from privkit.data.digits import SOURCES, Digits, first_of_each_class, refuse_repeats
from privkit.errors import InputError

DRAWN = {  # first 16 digits of the sha256 of the default images
    "mnist": "0677f592f586ab1e",
    "optdigits": "7d1916de1ef43a63",
    "pendigits": "b4048ccaf8513848",
    "syn": "6ca30fa6f7b6963d",
}


@pytest.fixture(scope="module")
def default() -> tuple[Domain, ...]:
    return Digits().load()


@pytest.fixture(scope="module")
def everything() -> tuple[Domain, ...]:
    return Digits(per_class=None).load()


def test_default_is_four_balanced_domains_of_16_by_16(default):
    assert [domain.name for domain in default] == ["mnist", "optdigits", "pendigits", "syn"]
    for domain in default:
        assert domain.records.shape == (2000, 16, 16)
        assert domain.records.dtype == np.uint8
        assert domain.labels.dtype == np.int64
        assert np.bincount(domain.labels).tolist() == [200] * 10


def test_none_takes_all_that_are_stored(everything):
    counts = {domain.name: len(domain.labels) for domain in everything}
    assert counts == {"mnist": 2000, "optdigits": 5620, "pendigits": 10992, "syn": 2000}


def test_smallest_class_is_what_the_settings_promise(everything):
    for domain in everything:
        assert np.bincount(domain.labels, minlength=10).min() == SOURCES[domain.name].per_class


def test_no_image_occurs_twice(everything):
    images = np.concatenate([domain.records.reshape(-1, 256) for domain in everything])
    assert len(np.unique(images, axis=0)) == len(images) == 20612


def test_ink_is_bright_and_ground_is_dark(default):
    for domain in default:
        corners = domain.records[:, [0, -1], [0, -1]]
        assert domain.records.max() > 250
        assert corners.mean() < domain.records.mean()


def test_load_gives_the_same_bytes_again_and_everywhere(default):
    again = Digits().load()
    for domain, twin in zip(default, again, strict=True):
        assert np.array_equal(domain.records, twin.records)
        assert np.array_equal(domain.labels, twin.labels)
    drawn = {d.name: hashlib.sha256(d.records.tobytes()).hexdigest()[:16] for d in default}
    assert drawn == DRAWN


def test_domains_keep_their_order_and_records(default):
    pen, mnist = Digits(domains=("pendigits", "mnist")).load()
    assert np.array_equal(pen.records, default[2].records)
    assert np.array_equal(mnist.records, default[0].records)


def test_fewer_per_class_is_a_subset_in_the_same_order(default):
    (few,) = Digits(domains=("syn",), per_class=7).load()
    assert np.bincount(few.labels).tolist() == [7] * 10
    kept = first_of_each_class(default[3].labels, 7)
    assert np.array_equal(few.records, default[3].records[kept])


def test_every_record_of_scikit_learn_is_in_optdigits_with_its_label(everything):
    stored = {
        image.tobytes(): label
        for image, label in zip(everything[1].records, everything[1].labels, strict=True)
    }
    grids, labels = load_digits(return_X_y=True)
    drawn = upscale(grids.astype(np.uint8).reshape(-1, 8, 8))
    assert [stored[image.tobytes()] for image in drawn] == labels.tolist()


@given(arrays(np.uint8, (2, 8, 8), elements=st.integers(0, 16)))
def test_upscale_is_bilinear_with_half_pixel_centres(grids):
    wide = np.arange(16) / 2 - 0.25
    places = np.arange(8)
    wanted = np.empty((2, 16, 16))
    for k in range(2):
        rows = np.stack([np.interp(wide, places, grids[k, :, j]) for j in range(8)], axis=1)
        wanted[k] = np.stack([np.interp(wide, places, row) for row in rows])
    assert np.abs(upscale(grids) - wanted * 255 / 16).max() <= 0.5


def naive_ink(points: np.ndarray, row: int, column: int) -> float:
    """Return the grey of one pixel, from the distance to a fine sampling of the polyline."""
    path = MARGIN + points * (SIDE - 2 * MARGIN) / 100
    x, y = path[:, 0], SIDE - path[:, 1]
    t = np.linspace(0, 1, 4001)
    nearest = min(
        np.hypot(column + 0.5 - (a + t * (b - a)), row + 0.5 - (c + t * (d - c))).min()
        for (a, b), (c, d) in zip(itertools.pairwise(x), itertools.pairwise(y), strict=True)
    )
    return 255 * min(max(HALF_WIDTH + 0.5 - nearest, 0), 1)


@given(
    arrays(np.uint8, (1, 8, 2), elements=st.integers(0, 100)),
    st.integers(0, 15),
    st.integers(0, 15),
)
def test_strokes_fade_with_the_distance_to_the_polyline(points, row, column):
    assert draw_strokes(points)[0, row, column] == pytest.approx(
        naive_ink(points[0].astype(float), row, column), abs=1.1
    )


def test_strokes_do_not_depend_on_the_block_they_are_drawn_in():
    points = np.random.default_rng(0).integers(0, 101, (1030, 8, 2)).astype(np.uint8)
    assert np.array_equal(draw_strokes(points)[1020:], draw_strokes(points[1020:]))


@pytest.mark.parametrize(
    ("draw", "shape", "limit"),
    [(upscale, (1, 8, 8), 16), (draw_strokes, (1, 8, 2), 100), (stretch, (1, 16, 16), 15)],
)
def test_a_record_out_of_range_is_refused(draw, shape, limit):
    with pytest.raises(ValueError, match=f"={limit + 1} must lie between 0 and {limit}"):
        draw(np.full(shape, limit + 1, np.uint8))
    assert draw(np.full(shape, limit, np.uint8)).shape == (1, 16, 16)
    assert draw(np.empty((0, *shape[1:]), np.uint8)).shape == (0, 16, 16)


def test_a_damaged_file_is_refused(tmp_path, monkeypatch):
    folder = shutil.copytree(digits.FOLDER, tmp_path / "stored")
    content = bytearray((folder / "syn.npz").read_bytes())
    content[1000] ^= 1
    (folder / "syn.npz").write_bytes(content)
    monkeypatch.setattr(digits, "FOLDER", folder)
    assert len(Digits(domains=("mnist",)).load()) == 1
    with pytest.raises(InputError, match=r"syn\.npz is damaged .* install privkit again"):
        Digits().load()


def test_a_missing_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(digits, "FOLDER", tmp_path)
    with pytest.raises(InputError, match=r"mnist\.npz is missing; install privkit again"):
        Digits().load()


def test_the_same_image_in_two_domains_is_refused(default):
    mnist, syn = default[0], default[3]
    twin = Domain(syn.records[5:6], syn.labels[5:6], "copy")
    refuse_repeats((mnist, syn))
    with pytest.raises(InputError, match=r"copy\[0\] is the same image as syn\[5\]"):
        refuse_repeats((mnist, syn, twin))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"domains": ["mnist", "usps"]},
            r"domains\.1='usps': input should be 'mnist', 'optdigits'",
        ),
        ({"domains": ["syn", "syn"]}, "a domain is named twice"),
        ({"domains": []}, "at least 1 item"),
        ({"per_class": 0}, "greater than or equal to 1"),
        ({"per_class": 201}, "mnist holds 200 records per class; ask for at most 200"),
        ({"domains": ["optdigits"], "per_class": 555}, "optdigits holds 554 records per class"),
        ({"per_class": True}, "valid integer"),
        ({"per_clas": 5}, "Did you mean per_class"),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(settings, message):
    with pytest.raises(InputError, match=message):
        plug.build("privkit.data", {"name": "digits", **settings})


def test_settings_come_back_and_stay_as_they_were():
    data = plug.build("privkit.data", {"name": "digits", "domains": ["syn"], "per_class": 20})
    assert data.settings() == {"name": "digits", "domains": ["syn"], "per_class": 20}
    assert plug.build("privkit.data", data.settings()) == data
    with pytest.raises(ValidationError, match="frozen"):
        data.per_class = 3  # pyright: ignore[reportAttributeAccessIssue]
