"""The numbers that a program gives to memdiag.mark."""

from ._handlers import raised

# A number of at least this size counts nothing, and is too long for some files.
TOO_LARGE = 1 << 53
# How many counts are remembered that a program has left for lower ones.
MOST_LEFT = 8


def number(agent, name, kind, value):
    """The value as an int or a float. None if it is no number: an error of the program, not ours, which one note reports."""
    try:
        given = kind(getattr(value, "detach", lambda: value)())  # PyTorch warns of a number from a tensor with a graph
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
    """The steps that a program marks. If it counts from the start again, as the batches of each epoch, steps go on from the last one:
    decreasing steps would show no growth, and no two snapshots may have the same step. If the program returns to an earlier count, as to
    the global step after the batches of an evaluation, that count goes on from where it was left."""

    def __init__(self):
        self.last, self.before = None, 0  # the last marked number, and what is added to numbers
        self.left = []  # numbers at which counts were left for lower ones
        self.stride = 0  # the last difference between two numbers of a count
        self.noted = False
        self.asked = None  # the last step at which a snapshot was asked for

    def number(self, agent, step):
        """The step for a number that the program marks."""
        last, self.last = self.last, step
        if last is None and step == 0 and agent.step == 1 != self.asked:
            agent.drop_after(0)  # an optimizer has stepped before the first mark of a program that counts from 0
        elif step < (agent.step if last is None else last):
            self.begin_anew(agent, step, last)
        elif last is not None:
            self.go_on(step, step - last)
        return self.before + step

    def begin_anew(self, agent, step, last):
        if not self.noted:
            agent.note("mark: step %d after step %d: steps do not go back, and are counted on from there" % (step, agent.step))
            self.noted = True
        if last is not None:
            self.left = [*self.left[1 - MOST_LEFT:], last]
        self.before = agent.step + 1 - step

    def go_on(self, step, ahead):
        """The number is higher than the last one. If it rose by more than before, and beyond a number at which an earlier count was left,
        that earlier count goes on."""
        passed = [n for n in self.left if n <= step]
        if passed and ahead > self.stride:
            self.before -= ahead - max(1, step - max(passed))
        elif ahead:
            self.stride = ahead
        self.left = [n for n in self.left if n > step]
