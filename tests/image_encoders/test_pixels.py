"""Images are brought to the size and channels that an encoder reads."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image
from torch import nn

from privkit.errors import InputError
from privkit.models import _pixels
from tests.image_encoders.made import COLOUR, GREY, SENTENCES

images = arrays.arrays(np.uint8, st.tuples(st.just(2), st.integers(1, 9), st.integers(1, 9), st.just(3)))


@given(images)
def test_grey_is_what_pillow_calls_grey(colour: np.ndarray) -> None:
    expected = [np.asarray(Image.fromarray(image).convert("L")) for image in colour]
    assert np.array_equal(_pixels.grey(colour), expected)


@given(images, st.integers(1, 12))
def test_a_grey_image_in_colour_and_back_is_itself(colour: np.ndarray, side: int) -> None:
    grey = colour[..., 0]
    assert np.array_equal(_pixels.grey(_pixels.colour(grey)), grey)
    three = _pixels.pixels(grey, channels=3, side=side, reader="x")
    assert three.shape == (2, 3, side, side)
    assert np.array_equal(three[:, 1:2], _pixels.pixels(grey, channels=1, side=side, reader="x"))


@pytest.mark.parametrize("side", [16, 40, 97])
def test_resizing_agrees_with_torch_within_a_level(side: int) -> None:
    ours = _pixels.pixels(COLOUR, channels=3, side=side, reader="x")
    given = torch.from_numpy(COLOUR).permute(0, 3, 1, 2).double()
    other = nn.functional.interpolate(given, (side, side), mode="bicubic", antialias=True)
    # the outer pixels go beyond 0 and 255 before they are cut, once per axis in Pillow
    assert np.abs(ours - other.clamp(0, 255).numpy()).mean() < 0.6
    smooth = np.broadcast_to(np.linspace(50, 200, 40, dtype=np.uint8)[:, None], (1, 40, 50)).copy()
    other = nn.functional.interpolate(
        torch.from_numpy(smooth)[:, None].double(), (side, side), mode="bicubic", antialias=True
    )
    assert _pixels.resized(smooth, side=side) == pytest.approx(other[:, 0].numpy(), abs=1.01)


@given(st.integers(0, 255), st.integers(1, 20), st.integers(1, 20))
def test_resizing_keeps_a_plain_image_plain(level: int, height: int, side: int) -> None:
    plain = np.full((1, height, 7), level, np.uint8)
    assert np.array_equal(_pixels.resized(plain, side=side), np.full((1, side, side), level))


def test_an_image_of_the_right_size_is_kept_as_it_is() -> None:
    assert np.array_equal(
        _pixels.pixels(COLOUR[:, :40, :40], channels=3, side=40, reader="x"),
        COLOUR[:, :40, :40].transpose(0, 3, 1, 2),
    )
    assert np.array_equal(_pixels.pixels(GREY, channels=1, side=None, reader="x")[:, 0], GREY)
    assert _pixels.pixels(COLOUR[:0], channels=3, side=9, reader="x").shape == (0, 3, 9, 9)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (
            SENTENCES,
            "encoder x reads images, and these records are sentences; take one that reads text, such",
        ),
        (GREY.astype(np.float32), r"not float32 of \[5, 40, 50\]; change the records' shape and type"),
        (COLOUR[0, 0], r"reads uint8 images of shape \[N, height, width\] or .*, not uint8 of \[50, 3\]"),
        (COLOUR.transpose(0, 3, 1, 2), r"not uint8 of \[5, 3, 40, 50\]"),
        (GREY[:, :0], r"not uint8 of \[5, 0, 50\]"),
    ],
)
def test_what_is_no_image_is_refused(records: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _pixels.pixels(records, channels=3, side=8, reader="x")
