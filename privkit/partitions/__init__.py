"""privkit's ways to split coordinates into an informative group and the rest: one file each."""
