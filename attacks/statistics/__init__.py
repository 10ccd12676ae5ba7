"""Statistics of attacks: every number with its interval, its no-skill value and its evidence.

Scores go in as two arrays, members and non-members, higher = member. They are never flipped or transformed,
ties count half, and blocks of ties are never split. What cannot be estimated has no value and a reason.
"""
