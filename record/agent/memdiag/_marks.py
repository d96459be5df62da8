"""The numbers that a program gives to memdiag.mark."""

from ._handlers import raised

# Whole numbers from this one on are no count of anything, and files have no room for all.
TOO_LARGE = 1 << 53


def number(agent, name, kind, value):
    """The value as an int or a float; None for what is no number, which a note says once: it is an error of the program's, not of ours."""
    try:
        given = kind(value)
        if kind is not int or abs(given) < TOO_LARGE:
            return given
        what = "one of %d bits" % given.bit_length()
    except Exception as e:
        if raised(e) or isinstance(e, RecursionError):
            raise
        what = repr(value[:40]) if type(value) is str else "a " + type(value).__name__
    begins = "mark: %s must be one number, not " % name
    if not any(note.startswith(begins) for note in agent.notes):
        agent.note(begins + what)
    return None
