"""privkit's reports: what people read, and how it is written down."""
