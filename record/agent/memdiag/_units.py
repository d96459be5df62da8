"""Units: the periods between two steps, and which of them are watched.

An evaluation, with everything up to the next step, is a unit of another kind. If no steps count, units are stretches of time.
"""

import _thread
import math

from ._clock import work
from ._sampler import Sampler, Stretches

# What the mode may cost: seconds at the start, plus a share of the time.
ALLOWANCE, SHARE = 0.06, 0.015
# Evaluations are rarer than steps, so they have a budget of their own.
EVAL_ALLOWANCE, EVAL_SHARE = 0.06, 0.025
# If UNKNOWN more storages have no stack, steps are watched in a row: PURSUED times as many as one such storage took to come. That has a
# budget of its own. Chance alone can long miss what is allocated rarely, and several at once, such as in each epoch.
UNKNOWN, PURSUED, PURSUIT_ALLOWANCE, PURSUIT_SHARE = 8, 8, 0.1, 0.01


class Units:
    """The part of the source that chooses the units to watch, and knows what they cost."""

    def begin_units(self):
        self.train, self.evaluation = Sampler(ALLOWANCE, SHARE), Sampler(EVAL_ALLOWANCE, EVAL_SHARE)
        # clock: units of a program without steps. ahead: seconds spent on the next snapshot. stretch: when the last watched stretch ended.
        self.clock, self.ahead, self.stretch = Stretches(ALLOWANCE, SHARE), 0.0, 0.0
        self.steps_in = None  # the thread whose steps count
        self.asked = False  # this unit is watched for a snapshot, which pays for it
        self.shortest = math.inf  # the fewest operators of a watched step
        self.unit, self.begun = self.train, 0.0  # the sampler of the current unit, and when the unit began
        self.evaluated = False  # an evaluation has begun since the last step
        self.turn = 0  # counts the steps or, without steps, the looks by the clock
        # unknown: turn of a census, and how many storages had no stack then. pursued: how many more steps to watch for them. pursues: this
        # step is one. pursuit: seconds that these steps cost.
        self.unknown, self.pursued, self.pursues, self.pursuit = None, 0, False, 0.0
        self.whole = True  # the unit that has just ended was watched completely
        self.since = None  # the first turn that was not watched completely, to save time; None before it
        self.blind = False  # the last evaluation was not watched

    def take_turn(self):
        self.whole, self.steps_in = self.watches(), _thread.get_ident()
        self.turn += 1
        self.begin(self.train if self.agent.stepping else self.clock)

    def unwatched(self):
        """How many units from now on will not be watched, as far as is known."""
        return 0 if self.mode is None or self.watches() or self.late or self.pursued else self.train.ahead()

    def settled(self):
        """Whether everything that the last step allocated was seen, and everything of the last evaluation. Then unseen storages are older, and none
        has replaced a seen one."""
        return not self.counts() or self.whole and not self.blind

    def counts(self):
        """Whether a snapshot takes a census, the most expensive part of it."""
        return self.mode is not None and self.since is not None

    def watch(self):
        """Watches the unit that has begun, for a snapshot after it."""
        if self.counts() and not self.watches() and not self.dispatches() and not self.profiled() and not self.agent.ticker.acts():
            self.on(1)
            self.asked = self.agent.stepping and self.watches()

    def watch_rest(self):
        """Watches the rest of the unit, for the stacks of what another snapshot in it shows."""
        if self.mode is not None and self.steps_in == _thread.get_ident() and not self.restores():
            self.watch()

    def watches(self):
        return self.thread is not None and not self.mode.paused

    def evaluates(self):
        """The program begins an evaluation. It may call eval for several models in turn."""
        self.skip = 0
        if self.mode is not None and not self.evaluated:
            self.evaluated = self.agent.stepping
            self.begin(self.evaluation)
            if self.agent.waited:
                self.watch()
            self.blind = not self.watches()

    def begin(self, sampler):
        """Begins a unit, watched or not as its sampler decides."""
        self.settle()
        self.unit = sampler
        weight = sampler.next(self.begun) or self.refused
        self.refused = 0
        self.pursues = not weight and sampler is self.train and self.pursued > 0 and self.pursuit <= PURSUIT_ALLOWANCE + PURSUIT_SHARE * self.begun
        if self.pursues:
            weight, self.pursued = 1, self.pursued - 1
        if weight and not self.profiled():
            self.on(weight)
            return
        self.leaves_out()
        self.off()

    def leaves_out(self):
        """From now on some units are not watched."""
        if self.since is None:
            self.since, self.stretch = self.turn, self.agent.elapsed()

    def settle(self):
        """Ends a unit: charges what it cost, and drops those of its storages that are freed already."""
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
            if self.unit is self.clock and self.counts() and self.watches():  # else the mode could only be paused, which also costs time
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
        """Seconds that watching costs, for a price that was measured with operators on the CPU."""
        return price if self.pace is None else self.pace.cost(price)

    def charge(self, cost):
        if self.asked:
            self.ahead, self.asked = self.ahead + cost, False
        elif self.pursues:
            self.pursuit += cost
        else:
            self.unit.costs(cost)

    def stand(self, now):
        """Makes storages of the stretch that was just watched stand for all since the watched stretch before it."""
        weight = max(1, round((now - self.stretch) / max(1e-6, now - self.begun)))
        for address in self.late:
            if address in self.table:
                self.table[address][3] = weight
        self.stretch = now

    def pursue(self, count):
        """Watches the next steps if many storages without a stack have appeared."""
        turn, before = self.unknown or (self.turn, count)
        more = count - before
        if more >= UNKNOWN:
            self.pursued, turn, before = PURSUED * (self.turn - turn) // more, self.turn, count
        self.unknown = turn, min(before, count)

    def reach(self):
        """How many units a watched one stood for, at most."""
        return max(self.train.reach, self.evaluation.reach)
