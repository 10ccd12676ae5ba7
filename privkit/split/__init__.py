"""Split learning at small scale: a client, a server, and what the server rebuilds."""
