"""From an embedding to an image: one linear layer, then as many doublings as the image is large."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

_GRID = 8  # sides of at most so many pixels before the first doubling
_FEWEST = 2  # doublings


class DecoderNet(nn.Module):
    """Gives pixels in [0, 1] for the direction of an embedding; no layer mixes the rows of a batch."""

    def __init__(self, width: int, image_shape: tuple[int, int, int], *, channels: int) -> None:
        super().__init__()
        colours, self.height, self.width = image_shape
        doublings = _FEWEST
        while max(self.height, self.width) > _GRID * 2**doublings:
            doublings += 1
        self.grid = (channels, -(-self.height // 2**doublings), -(-self.width // 2**doublings))
        self.spread = nn.Linear(width, self.grid[0] * self.grid[1] * self.grid[2])
        self.doubled = nn.ModuleList(
            nn.ConvTranspose2d(channels, channels, kernel_size=4, stride=2, padding=1)
            for _ in range(doublings)
        )
        self.drawn = nn.Conv2d(channels, colours, kernel_size=3, padding=1)

    def forward(self, z_Nd: Float[Tensor, "N d"]) -> Float[Tensor, "N c height width"]:
        """Return one image per embedding."""
        h = functional.relu(self.spread(functional.normalize(z_Nd) * z_Nd.shape[1] ** 0.5))
        h = h.unflatten(1, self.grid)
        for layer in self.doubled:
            h = functional.relu(layer(h))
        return self.drawn(h)[..., : self.height, : self.width].sigmoid()
