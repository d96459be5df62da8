"""The numbers that a program gives to memdiag.mark."""

from ._handlers import raised

# Whole numbers from this one on are no count of anything, and files have no room for all.
TOO_LARGE = 1 << 53
# Counts that a program has left for lower ones, of which it is known where.
MOST_LEFT = 8


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
    go back tell of no growth, and two snapshots are not of the same. A count to which it comes back, as the global step after the
    batches of an evaluation, goes on from where it left it."""

    def __init__(self):
        self.last, self.before = None, 0  # the number that was marked last, and what is added to numbers
        self.left = []  # numbers at which lower counts began
        self.stride = 0  # how far a count went on at once, last
        self.noted = False
        self.asked = None  # the last step at which somebody asked for a snapshot

    def number(self, agent, step):
        """The step that a program marks as this one."""
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
        """The number is so much higher than the last one. If that is farther than a count has gone, and beyond where one was left, it is
        that one's."""
        passed = [n for n in self.left if n <= step]
        if passed and ahead > self.stride:
            self.before -= ahead - max(1, step - max(passed))
        elif ahead:
            self.stride = ahead
        self.left = [n for n in self.left if n > step]
