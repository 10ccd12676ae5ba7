"""Attacks on gradients: one file each, found by its name."""
