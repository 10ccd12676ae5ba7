"""Maps between frozen embedding and head, one plug-in per file."""
