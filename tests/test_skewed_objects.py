"""Drawings over clients with label skew: who has what, and that nobody trains on a thing that is tested."""

import numpy as np
import pytest

from privkit import plug
from privkit.data.objects import Objects
from privkit.data.skewed_objects import SkewedObjects
from privkit.errors import InputError


def rows(records: np.ndarray) -> list[bytes]:
    return [record.tobytes() for record in records]


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_every_drawing_is_somebodys_or_tested_and_no_thing_is_both(alpha):
    data = SkewedObjects.model_validate({"alpha": alpha, "side": 32, "empty": "drop", "test_per_class": None})
    domains = data.load()
    held = [row for domain in domains for row in rows(domain.records)]
    assert domains[0].test is not None
    tested = rows(domains[0].test.records)
    thing = {}
    for domain in Objects(side=32).load():
        assert domain.things is not None
        thing |= dict(zip(rows(domain.records), domain.things.tolist(), strict=True))
    assert sorted(held + tested) == sorted(thing)
    assert {thing[row] for row in held}.isdisjoint(thing[row] for row in tested)
    assert all(domain.test is domains[0].test for domain in domains)
    assert set(np.unique(domains[0].test.labels)) == set(range(data.num_classes))


def test_settings_come_back_and_others_are_refused():
    data = plug.build("privkit.data", {"name": "skewed_objects", "alpha": 1, "side": 32})
    assert plug.build("privkit.data", data.settings()) == data
    with pytest.raises(InputError, match="side=48"):
        plug.build("privkit.data", {"name": "skewed_objects", "side": 48})
