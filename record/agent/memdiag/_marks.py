"""The numbers that a program gives to memdiag.mark."""

from ._handlers import raised


def number(agent, name, kind, value):
    """The value as an int or a float; None for what is no number, which a note says once: it is an error of the program's, not of ours."""
    try:
        return kind(value)
    except Exception as e:
        if raised(e) or isinstance(e, RecursionError):
            raise
    begins = "mark: %s must be one number, not " % name
    if not any(note.startswith(begins) for note in agent.notes):
        agent.note(begins + (repr(value[:40]) if type(value) is str else "a " + type(value).__name__))
    return None
