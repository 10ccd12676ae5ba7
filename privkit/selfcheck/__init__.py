"""Reference cases, shipped or given, run through the accountant and through the statistics of attacks."""
