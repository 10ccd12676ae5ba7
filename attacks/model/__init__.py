"""Membership attacks on trained weights: one file each, found by its name."""
