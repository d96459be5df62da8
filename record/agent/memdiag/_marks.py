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


class Steps:
    """The steps that a program marks. Where it counts anew, as the batches of each epoch, they count on from the last one: steps that
    go back tell of no growth, and two snapshots are not of the same."""

    def __init__(self):
        self.told, self.before = None, 0

    def number(self, agent, step):
        """The step that a program marks as this one."""
        first, self.told = self.told, step
        if first is None and 0 < agent.step == step + 1:
            agent.drop()  # an optimizer has stepped before the first mark of a program that counts from 0
        elif step < (agent.step if first is None else first):
            if not self.before:
                agent.note("mark: step %d comes after step %d: steps count on from there" % (step, agent.step))
            self.before = agent.step + 1 - step
        return self.before + step
