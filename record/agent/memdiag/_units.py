"""Units: what lies between two steps, and which of them are watched.

An evaluation, with all up to the next step, is another kind. Where no steps count, units are stretches of time.
"""

import math

from ._clock import work
from ._sampler import Sampler, Stretches

# What the mode may cost: so many seconds, then this share of the time.
ALLOWANCE, SHARE = 0.06, 0.015
# Evaluations are rarer than steps: a budget of their own.
EVAL_ALLOWANCE, EVAL_SHARE = 0.06, 0.025
# Where so many storages more have no stack, so many times the steps that one of them came in are watched in a row, which
# may cost so much together: chance may miss for long what is made once in a while, as each epoch, several at once.
UNKNOWN, PURSUED, PURSUIT_ALLOWANCE, PURSUIT_SHARE = 8, 8, 0.1, 0.01


class Units:
    """The part of the source that chooses them, and knows what they cost."""

    def begin_units(self):
        self.train, self.evaluation = Sampler(ALLOWANCE, SHARE), Sampler(EVAL_ALLOWANCE, EVAL_SHARE)
        # Of a program without steps; what was spent on the next snapshot; and when the last stretch of time ended that was watched.
        self.clock, self.ahead, self.stretch = Stretches(ALLOWANCE, SHARE), 0.0, 0.0
        self.asked = False  # a snapshot has this unit be watched, and pays for it
        self.shortest = math.inf  # operators of a step that was watched
        self.unit, self.begun = self.train, 0.0  # of what the unit is that goes on, and since when
        self.evaluated = False  # since the last step
        self.turn = 0  # counts the steps, or where there are none the looks by the clock
        # The turn of a census and how many had no stack; for how many steps more to watch for them, whether this one is, and the
        # seconds that took.
        self.unknown, self.pursued, self.pursues, self.pursuit = None, 0, False, 0.0
        self.whole = True  # the unit that has just ended was recorded
        self.since = None  # the turn from which on not all were, to spare time
        self.blind = False  # the last evaluation was not

    def take_turn(self):
        self.whole = self.watches()
        self.turn += 1
        self.begin(self.train if self.agent.stepping else self.clock)

    def unwatched(self):
        """How many units from now on are not watched, as far as can be told."""
        return 0 if self.mode is None or self.watches() or self.late or self.pursued else self.train.ahead()

    def settled(self):
        """Whether all that the last step made was seen, and the last evaluation: what nobody has seen is older,
        and was not put in the place of what was."""
        return not self.counts() or self.whole and not self.blind

    def counts(self):
        """Whether a snapshot takes a census, which is the dearest part of it."""
        return self.mode is not None and self.since is not None

    def watch(self):
        """Records the unit that has begun, for a snapshot behind it."""
        if self.counts() and not self.watches() and not self.dispatches() and not self.agent.ticker.acts():
            self.on(1)
            self.asked = self.agent.stepping and self.watches()

    def watches(self):
        return self.thread is not None and not self.mode.paused

    def evaluates(self):
        """The program begins an evaluation; several models may be told one by one."""
        self.skip = 0
        if self.mode is not None and not self.evaluated:
            self.evaluated = self.agent.stepping
            self.begin(self.evaluation)
            if self.agent.waited:
                self.watch()
            self.blind = not self.watches()

    def begin(self, sampler):
        """Begins a unit: recorded or not, as its sampler says."""
        self.settle()
        self.unit = sampler
        weight = sampler.next(self.begun)
        self.pursues = not weight and sampler is self.train and self.pursued > 0 and self.pursuit <= PURSUIT_ALLOWANCE + PURSUIT_SHARE * self.begun
        if self.pursues:
            weight, self.pursued = 1, self.pursued - 1
        if weight:
            self.on(weight)
            return
        self.leaves_out()
        self.off()

    def leaves_out(self):
        """Not all is watched from now on."""
        if self.since is None:
            self.since, self.stretch = self.turn, self.agent.elapsed()

    def settle(self):
        """Ends a unit: what it cost, and which of its storages are gone already."""
        now = self.agent.elapsed()
        price = None
        if self.thread is not None:
            begun = work()
            self.sweep_young()
            if self.unit is self.train and self.agent.step > 1 and self.watches():
                self.shortest = min(self.shortest, max(1, self.mode.ops))
            price = self.price.of(self.mode.ops, now - self.begun) + (work() - begun)
            cost = self.costs(price)
            self.charge(cost)
            if self.unit is self.clock and self.counts() and self.watches():  # not where the mode could only be paused, which costs, too
                self.ahead += cost
                self.stand(now)
        elif self.late:
            self.sweep_young()
        turn, since, taken = self.paced
        if self.turn > turn:
            if self.pace is not None and self.unit is self.train:
                self.pace.took((now - since - (self.agent.took - taken)) / (self.turn - turn), price)
            self.paced = self.turn, now, self.agent.took
        self.begun, self.mode.ops = now, 0

    def costs(self, price):
        """Seconds that it costs to watch what has a price, which is that of a CPU's operators."""
        return price if self.pace is None else self.pace.cost(price)

    def charge(self, cost):
        if self.asked:
            self.ahead, self.asked = self.ahead + cost, False
        elif self.pursues:
            self.pursuit += cost
        else:
            self.unit.costs(cost)

    def stand(self, now):
        """Has what was made in a stretch of time stand for all since the one before that was watched."""
        weight = max(1, round((now - self.stretch) / max(1e-6, now - self.begun)))
        for address in self.late:
            if address in self.table:
                self.table[address][3] = weight
        self.stretch = now

    def pursue(self, count):
        """Has the next steps be watched where many storages have come that have no stack."""
        turn, before = self.unknown or (self.turn, count)
        more = count - before
        if more >= UNKNOWN:
            self.pursued, turn, before = PURSUED * (self.turn - turn) // more, self.turn, count
        self.unknown = turn, min(before, count)

    def reach(self):
        """How many units a recorded one stood for at most."""
        return max(self.train.reach, self.evaluation.reach)
