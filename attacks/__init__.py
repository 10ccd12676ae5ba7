"""privkit's attacks: what can be taken from a release, and how sure we are of each number."""
