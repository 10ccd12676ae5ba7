"""What protects the records behind an upload, one defense per file."""
