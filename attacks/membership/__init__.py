"""Membership attacks: one file each, found by its name."""
