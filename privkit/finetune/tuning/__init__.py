"""What is trained in or beside a frozen transformer, one kind per file."""
