"""Servers: who merges the clients' messages and answers them; one per file, found by its name."""
