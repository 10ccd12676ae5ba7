"""Other libraries that can answer some of the cases, one per file; each is loaded only where it is installed.

What they answer decides nothing: it shows who is off by how much.
"""
