"""The blocks of a transformer of the transformers library, whatever its family calls them."""

from torch import nn

from privkit.errors import InputError


def blocks(net: nn.Module) -> nn.ModuleList:
    """Return the row of blocks of a base model.

    Raises:
        InputError: it has none, or more than one.
    """
    wanted = int(getattr(net.config, "num_hidden_layers", 0))  # pyright: ignore[reportArgumentType]
    found = [m for m in net.modules() if isinstance(m, nn.ModuleList) and len(m) == wanted and wanted]
    # a block may itself hold a row of as many modules: the outermost comes first
    if not found:
        raise InputError(
            f"{type(net).__name__} is not one row of blocks, so no adapter fits between them; use tuning lora."
        )
    return found[0]
