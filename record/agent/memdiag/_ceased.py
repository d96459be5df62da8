"""Detects that steps have ceased: a program trains, and then serves, generates, evaluates, or replays a CUDA graph.

After its last step the program is recorded by the clock, like one without steps, and apart from its steps. If another step comes, the pause
was a long evaluation or a checkpoint. Then these records are dropped, and the state from before is restored.
"""

from ._real import time

# Steps have ceased if none came for TIMES times the longest interval between two, and for FLOOR seconds. Evaluations and checkpoints become
# longer in a run, but rarely tenfold.
TIMES, FLOOR = 10, 5.0
# The time between two passes of the agent's thread counts up to so many seconds: a stopped process did nothing meanwhile.
PASS = 0.5
# The fields of the agent and of its heap that are saved meanwhile; begin adds some of its search for holders.
OF_AGENT = ("written", "ticks", "waited", "spent", "last", "since", "ran_before")
OF_HEAP = ("windows", "told", "rows")


def moment_of(agent):
    """The moment of a look: the step, or by the clock the number of snapshots."""
    return agent.step if agent.stepping else agent.ticks


class Ceased:
    def __init__(self, agent):
        self.agent = agent
        self.step = 0  # at the last pass
        self.came = False  # whether a step came since, also one of an optimizer in a program that counts its steps itself
        self.passed = None  # the time of the last pass
        self.quiet = self.longest = 0.0  # seconds since the last step, and the most between two steps
        self.after = None  # the last step, once steps have ceased; None while they count
        self.began = self.elapsed = 0.0  # when they ceased, by the clock and by the agent's elapsed()
        self.aside = None

    def look(self, now):
        """Called at each pass of the agent's thread."""
        step, before = self.agent.step, self.passed
        self.passed = now
        if before is None or step != self.step or self.came:
            self.longest = max(self.longest, self.quiet) if self.step else 0.0
            self.step, self.quiet, self.came = step, 0.0, False
        else:
            self.quiet += min(now - before, PASS)

    def due(self):
        """Whether no step has come for long. Not for a program that doctor changes or that is recorded with --every: these are judged by their steps
        alone. Nor for processes that are recorded beside a rank: these are recorded by the clock, if at all."""
        agent = self.agent
        return (self.after is None and 0 < self.step == agent.step and self.quiet > max(FLOOR, TIMES * self.longest) and not agent.fixed and not agent.number
                and agent.intervention is None and agent.owner.get("step", False))

    def begin(self):
        """Saves the state. From now on the program is recorded by the clock."""
        agent, heap, holders = self.agent, self.agent.heap, self.agent.holders
        self.aside = [(agent, n, getattr(agent, n)) for n in OF_AGENT] + [(heap, n, getattr(heap, n)) for n in OF_HEAP]
        self.aside += [(holders, n, getattr(holders, n)) for n in ("next", "next_look")] + [(holders.containers, "next", holders.containers.next)]
        self.after, self.elapsed, self.began = agent.step, agent.elapsed(), time.perf_counter()
        agent.written, agent.ticks, agent.waited, agent.spent, agent.last, agent.since, agent.ran_before = [], 0, 0, 0.0, 0.0, self.elapsed, 0.0
        holders.next = holders.next_look = holders.containers.next = 0
        heap.begin_anew()  # ends a window that waits for more steps
        agent.torch.skip, agent.torch.stretch = 0, self.elapsed  # the operators that it watches first stand for no step
        agent.ticker.begin_anew()

    def end(self):
        """A step has come. Restores the state from before."""
        self.came = True
        if self.after is None:
            return
        self.agent.heap.windows.stop()
        self.agent.drop()
        for owner, name, value in self.aside:
            setattr(owner, name, value)
        self.after, self.aside = None, None
        self.began = self.elapsed = 0.0
