"""Kinds of canaries beside those that are planted as they stand or negated, one per file."""
