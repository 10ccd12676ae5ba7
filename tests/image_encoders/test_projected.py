"""Another encoder behind a random matrix."""

from pathlib import Path

import numpy as np
import pytest
import torch

from privkit import plug
from privkit.errors import InputError
from privkit.models._base import Staged
from privkit.models._torch_image import TorchImageEncoder
from privkit.models.hf_image import HfImage
from privkit.models.projected import Projected
from privkit.models.usps_cnn import UspsCnn
from tests.image_encoders.made import COLOUR, RNG, as_floats, close


def test_a_projection_is_a_random_matrix_behind_the_other_encoder(vit: HfImage) -> None:
    encoder = Projected(encoder=vit, output_dim=64)
    assert close(encoder.encode(COLOUR), vit.encode(COLOUR) @ encoder.matrix().T)
    assert (encoder.dim, encoder.trained_on) == (64, vit.trained_on)
    assert encoder.image_shape == vit.image_shape
    assert np.array_equal(encoder.pixels(COLOUR), vit.pixels(COLOUR))


def test_a_projection_keeps_module_and_blocks(encoder: TorchImageEncoder) -> None:
    projected = Projected(encoder=encoder, output_dim=16)
    x, z = as_floats(encoder, COLOUR), projected.encode(COLOUR)
    staged = projected.staged()
    assert isinstance(staged, Staged)
    assert staged.widths == encoder.staged().widths
    with torch.no_grad():
        assert close(projected.module()(x), z)
        assert close(staged.adapted(x, lambda i, h: h), z)
        changed = encoder.staged().adapted(x, lambda i, h: 1.5 * h).numpy() @ projected.matrix().T
        assert close(staged.adapted(x, lambda i, h: 1.5 * h), changed)


def test_a_projection_has_the_entries_it_says() -> None:
    # 65,536 numbers: the mean is within 5 of its standard errors, as are the variance and the fourth moment
    entries = Projected(encoder=UspsCnn(), output_dim=512).matrix().astype(np.float64).ravel() * np.sqrt(512)
    assert entries.size == 65536
    assert abs(entries.mean()) < 5 / 256
    assert abs(entries.var() - 1) < 5 * np.sqrt(2) / 256
    assert abs((entries**4).mean() - 3) < 5 * np.sqrt(96) / 256


def test_a_projection_depends_on_its_seed_and_sizes_alone() -> None:
    made = {
        key: Projected(encoder=UspsCnn(), output_dim=key[0], seed=key[1])
        for key in ((8, 0), (8, 1), (16, 0), (16, 1))
    }
    again = Projected(encoder=UspsCnn(), output_dim=8, seed=1)
    assert np.array_equal(made[8, 1].matrix(), again.matrix())
    assert made[8, 1].fingerprint == again.fingerprint
    assert len({encoder.fingerprint for encoder in made.values()}) == 4
    assert not np.allclose(made[8, 0].matrix() * np.sqrt(8), made[16, 0].matrix()[:8] * np.sqrt(16))
    other = Projected(encoder=UspsCnn(normalize=False), output_dim=8, seed=1)
    assert np.array_equal(other.matrix(), again.matrix())


def test_a_projection_encodes_with_the_other_encoder_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIVKIT_CACHE", str(tmp_path))
    calls = []
    real = UspsCnn.encode
    monkeypatch.setattr(UspsCnn, "encode", lambda self, x: calls.append(len(x)) or real(self, x))
    digits = RNG.integers(0, 256, (4, 16, 16)).astype(np.uint8)
    for seed in range(3):
        assert Projected(encoder=UspsCnn(), output_dim=8, seed=seed).encode(digits).shape == (4, 8)
    assert calls == [4]


def test_a_projection_is_built_from_plain_settings() -> None:
    settings = {
        "name": "projected",
        "encoder": {"name": "usps_cnn", "normalize": False},
        "output_dim": 256,
        "seed": 7,
    }
    encoder = plug.build("privkit.models", settings)
    assert encoder == Projected(encoder=UspsCnn(normalize=False), output_dim=256, seed=7)
    assert encoder.settings() == settings
    with pytest.raises(InputError, match=r"encoder 'ups_cnn' is unknown; .* Did you mean usps_cnn"):
        plug.build("privkit.models", settings | {"encoder": "ups_cnn"})
