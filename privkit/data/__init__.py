"""Data sets: one file each, found by its name."""
