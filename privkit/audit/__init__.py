"""The audit: promised, taken, cost, and one verdict. ``from privkit.audit.run import audit``."""
