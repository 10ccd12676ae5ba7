"""Other structures for the same work, one file each.

They were written from descriptions of how each code base is organised, for these benchmarks, and copy none of it.
What they compute is checked against privkit's result before anything is timed.
"""
