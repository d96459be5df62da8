"""Steps that have ceased: a program trains, and then serves, generates, evaluates, or replays a CUDA graph.

After its last step it is recorded as a program without steps is, by the clock, apart from what its steps showed. Where
another step comes, it was a long evaluation or a checkpoint: what was recorded of it goes, and all is as it was.
"""

import time

# Steps have ceased when none came for so many times the longest interval between two, and for so many seconds at least: evaluations
# and checkpoints become longer in a run, but rarely tenfold.
TIMES, FLOOR = 10, 5.0
# The time between two passes of the agent's thread counts up to so many seconds: a process that was stopped did nothing meanwhile.
PASS = 0.5
# What of the agent is put aside meanwhile, of its heap and of its search for holders.
OF_AGENT = ("written", "ticks", "waited", "spent", "last", "since", "ran_before")
OF_HEAP = ("windows", "told", "rows")


def moment_of(agent):
    """That of a look: the step, or by the clock how many snapshots there were."""
    return agent.step if agent.stepping else agent.ticks


class Ceased:
    def __init__(self, agent):
        self.agent = agent
        self.step = 0  # at the last pass
        self.came = False  # a step since, also of an optimizer whose steps the program counts by itself
        self.passed = None  # the time of that
        self.quiet = self.longest = 0.0  # seconds since a step came, and the most between two
        self.after = None  # the last step, where what follows is recorded; None while steps count
        self.began = self.elapsed = 0.0  # since when it is, by the clock and by the agent's elapsed()
        self.aside = None

    def look(self, now):
        """The agent's thread passes by."""
        step, before = self.agent.step, self.passed
        self.passed = now
        if before is None or step != self.step or self.came:
            self.longest = max(self.longest, self.quiet) if self.step else 0.0
            self.step, self.quiet, self.came = step, 0.0, False
        else:
            self.quiet += min(now - before, PASS)

    def due(self):
        """Whether no step has come for long. A program that doctor changes, and one of which each so many steps were asked for, is
        judged by its steps alone; other processes are recorded beside by the clock, if at all."""
        agent = self.agent
        return (self.after is None and 0 < self.step == agent.step and self.quiet > max(FLOOR, TIMES * self.longest) and not agent.fixed and not agent.number
                and agent.intervention is None and agent.owner.get("step", False))

    def begin(self):
        """What follows is recorded by the clock."""
        agent, heap, holders = self.agent, self.agent.heap, self.agent.holders
        self.aside = [(agent, n, getattr(agent, n)) for n in OF_AGENT] + [(heap, n, getattr(heap, n)) for n in OF_HEAP]
        self.aside += [(holders, n, getattr(holders, n)) for n in ("next", "next_look")] + [(holders.containers, "next", holders.containers.next)]
        self.after, self.elapsed, self.began = agent.step, agent.elapsed(), time.perf_counter()
        agent.written, agent.ticks, agent.waited, agent.spent, agent.last, agent.since, agent.ran_before = [], 0, 0, 0.0, 0.0, self.elapsed, 0.0
        holders.next = holders.next_look = holders.containers.next = 0
        heap.begin_anew()  # which ends a window that waits for more steps
        agent.torch.skip, agent.torch.stretch = 0, self.elapsed  # what it watches first stands for no step
        agent.ticker.begin_anew()

    def end(self):
        """A step has come."""
        self.came = True
        if self.after is None:
            return
        self.agent.heap.windows.stop()
        self.agent.drop()
        for owner, name, value in self.aside:
            setattr(owner, name, value)
        self.after, self.aside = None, None
        self.began = self.elapsed = 0.0
