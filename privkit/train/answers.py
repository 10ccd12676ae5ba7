"""The servers' answers, stacked for the clients of a fleet."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from privkit.errors import InputError
from privkit.methods._base import State
from privkit.methods._down import Down


def stacked_answers(each: Sequence[State], shared: Sequence[State], run_G: Tensor) -> Down:
    """Return what clients got.

    Args:
        each: what each client alone got, in stacked order; all with the same names.
        shared: what all clients of each run got; all with the same names.
        run_G: run of each client, which decides the device.

    Raises:
        InputError: some got what others did not.
    """
    return Down(each=_by_name(each, run_G.device), shared=_by_name(shared, run_G.device), run_G=run_G)


def _by_name(answers: Sequence[State], device: torch.device) -> dict[str, Tensor]:
    odd = next((answer for answer in answers if answer.keys() != answers[0].keys()), None)
    if odd is not None:
        raise InputError(
            f"the server answers with {sorted(answers[0])} and with {sorted(odd)}; give everybody the same names."
        )
    return {name: stacked([one[name] for one in answers], device) for name in answers[0]}


def stacked(arrays: Sequence[np.ndarray], device: torch.device) -> Tensor:
    """Return arrays with one axis more in front; shorter ones are filled up along their first axis.

    Whole numbers, which are labels, are filled up with -1, all others with 0.

    >>> stacked([np.array([3, 4]), np.array([5])], torch.device("cpu"))
    tensor([[ 3,  4],
            [ 5, -1]])
    """
    longest = max((len(a) for a in arrays if a.ndim), default=0)
    whole = np.stack([_filled(a, longest) for a in arrays])
    return torch.from_numpy(whole).to(device)


def _filled(array: np.ndarray, length: int) -> np.ndarray:
    if not array.ndim or len(array) == length:
        return array
    filler = -1 if np.issubdtype(array.dtype, np.signedinteger) else 0
    rest = np.full((length - len(array), *array.shape[1:]), filler, dtype=array.dtype)
    return np.concatenate([array, rest])
