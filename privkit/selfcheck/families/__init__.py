"""What the expected values of an audit case mean, one topic per file; importing this package registers them."""

from importlib import import_module

for _topic in ("scores", "limits", "certificates", "no_skill", "ceilings", "prototypes", "canaries", "seeds"):
    import_module(f"privkit.selfcheck.families.{_topic}")
