"""What servers answer, stacked: filled up where one is longer, held once per run, hidden by what a client alone got."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from privkit.errors import InputError
from privkit.methods._down import Down
from privkit.train.answers import stacked, stacked_answers

CPU = torch.device("cpu")
FILLERS = {"float32": 0.0, "float64": 0.0, "bool": False, "int64": -1, "int32": -1}


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.lists(st.integers(1, 3), max_size=2),
    st.sampled_from(sorted(FILLERS)),
)
def test_shorter_arrays_are_filled_up_at_their_end(lengths, rest, dtype):
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 2, (n, *rest)).astype(dtype) for n in lengths]
    found = stacked(arrays, CPU).numpy()
    assert found.shape == (len(lengths), max(lengths), *rest)
    assert found.dtype == dtype
    for row, array in zip(found, arrays, strict=True):
        assert np.array_equal(row[: len(array)], array)
        assert (row[len(array) :] == FILLERS[dtype]).all()


@pytest.mark.parametrize("dtype", sorted(FILLERS))
def test_numbers_without_axes_are_one_per_answer(dtype):
    found = stacked([np.array(1, dtype=dtype), np.array(0, dtype=dtype)], CPU)
    assert found.shape == (2,)
    assert found.tolist() == [1, 0]


def test_arrays_of_other_widths_are_no_answers_of_one_kind():
    with pytest.raises(ValueError, match="same shape"):
        stacked([np.zeros((2, 3)), np.zeros((2, 4))], CPU)


def answers() -> Down:
    each = [{"mine": np.array([float(g)])} for g in range(3)]
    shared = [
        {"vectors": np.ones((2, 4)), "labels": np.array([5, 7])},
        {"vectors": 2 * np.ones((1, 4)), "labels": np.array([6])},
    ]
    return stacked_answers(each, shared, torch.tensor([1, 0, 1]))


def test_clients_read_what_their_own_run_got():
    down = answers()
    assert down["labels"].tolist() == [[6, -1], [5, 7], [6, -1]]
    assert down["vectors"].sum(2).tolist() == [[8, 0], [4, 4], [8, 0]]
    assert down["mine"].tolist() == [[0.0], [1.0], [2.0]]
    assert down.shared["labels"].shape == (2, 2)


def test_some_clients_read_what_the_whole_does():
    down = answers()
    for part in (slice(0, 1), slice(1, 3), slice(0, 3)):
        for name in ("labels", "vectors", "mine"):
            assert torch.equal(down.part(part)[name], down[name][part])
        assert torch.equal(down.part(part).run_G, down.run_G[part])
    assert torch.equal(down.first(2)["labels"], down["labels"][:2])
    with pytest.raises(ValueError, match="take parts of the whole only"):
        down.part(slice(0, 2)).part(slice(0, 1))


def test_what_a_client_alone_got_hides_what_all_got():
    each = [{"labels": np.array([9, 9])}, {"labels": np.array([8])}]
    down = stacked_answers(each, [{"labels": np.array([1])}], torch.tensor([0, 0]))
    assert down["labels"].tolist() == [[9, 9], [8, -1]]


def test_a_name_that_not_everybody_got_is_refused():
    with pytest.raises(
        InputError, match=r"answers with \[\] and with \['told'\]; give everybody the same names"
    ):
        stacked_answers([{}, {"told": np.zeros(1)}], [{}], torch.tensor([0, 0]))
    both = {"a": np.zeros(1), "b": np.zeros(1)}
    with pytest.raises(InputError, match=r"answers with \['a', 'b'\] and with \['a'\]"):
        stacked_answers([{}], [both, {"a": np.zeros(1)}], torch.tensor([1]))
