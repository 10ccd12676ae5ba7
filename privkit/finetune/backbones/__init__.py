"""Transformers that are tuned, one per file; their own weights stay as they are."""
