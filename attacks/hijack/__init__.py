"""Feature hijacking: one attack per file, found by its name. It rebuilds records; it scores no candidates."""
