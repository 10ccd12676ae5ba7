"""The laws, one topic per file; importing this package registers them."""

from importlib import import_module

for _topic in (
    "gaussian_mechanisms",
    "other_mechanisms",
    "promises",
    "calibrations",
    "formula",
    "selections",
    "neighbours",
    "leaks",
    "clusters",
    "scores",
):
    import_module(f"accountant.selfcheck.laws.{_topic}")
