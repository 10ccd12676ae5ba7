"""Code structures that rows of ``benchmarks/gradient.py`` are timed against; written anew, none of it copied."""
