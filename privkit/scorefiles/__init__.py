"""Files of scores that were made elsewhere: one format per file of this package."""
