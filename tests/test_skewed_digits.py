"""Digits over clients: every record once, tested on its owner's or on records that nobody trains on."""

import numpy as np
import pytest

from privkit.data._base import Domain
from privkit.data.digits import Digits
from privkit.data.skewed_digits import SkewedDigits


def rows(domains: tuple[Domain, ...]) -> list[bytes]:
    return sorted(record.tobytes() for domain in domains for record in domain.records)


def test_every_record_has_one_owner_and_is_tested_there():
    found = SkewedDigits(clients=5, alpha=0.5, per_style=10).load()
    assert len(found) == 5
    assert all(domain.test is None for domain in found)
    assert rows(found) == rows(Digits(per_class=10).load())


def test_what_all_are_tested_on_is_the_last_fifth_of_each_class_and_style_and_has_no_owner():
    found = SkewedDigits(clients=5, alpha=0.5, per_style=10, tests="shared", test_per_class=None).load()
    test = found[0].test
    assert test is not None
    assert all(domain.test is test for domain in found)
    assert np.bincount(test.labels).tolist() == [4 * 2] * 10
    owned = rows(found)
    assert len(owned) == 4 * 10 * 8
    assert not set(owned) & {record.tobytes() for record in test.records}


@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_small_alpha_leaves_clients_few_classes(alpha):
    found = SkewedDigits(clients=10, alpha=alpha).load()
    classes = np.mean([len(np.unique(domain.labels)) for domain in found])
    assert bool(classes < 8) is (alpha < 1)
