"""The one error a user is meant to read."""


class InputError(ValueError):
    """What was given cannot be used; the message names the value, what is wanted and the way out."""


class DivergedError(InputError):
    """Training left the finite numbers; the message says whose, and what to change."""
