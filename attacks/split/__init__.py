"""Split learning: what a server rebuilds from the features that a client sends it; one attack per file."""
