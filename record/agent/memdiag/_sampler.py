"""Which steps are watched, so that watching costs no more than a share of the time."""

# The share is approached by doubling the units between two recorded ones, each time after so many of those; after fewer
# where they have cost so many times what they may: a reinforcement learner has some hundred steps, of 40 ms each.
PERIODS, HURRIED, DEAR = 8, 3, 2
# All are recorded where that costs no more than this share: what is not seen costs a census at each snapshot. And
# rarer than one in so many only where that would cost more than this: small operators tell little of what is rare.
ALL_SHARE, NEAR, NEAR_SHARE = 0.03, 8, 0.05
# All three of a program that uses a GPU, whose own record has most of what is to be seen; and the periods where they have cost too much:
# on an H200 a step of 17 ms takes 14 ms longer if it is recorded.
GPU_SHARE, GPU_HURRIED = 0.005, 1


class Sampler:
    """Which units of a kind are recorded: all while an allowance lasts, then one in so many.

    That one stands for all of them. It is taken at random, so that nothing periodic is missed for ever.
    The number doubles after some such periods at most, so that one unit never weighs much beside all
    before it."""

    def __init__(self, allowance, share):
        self.allowance, self.share, self.all_share, self.near_share, self.hurried = allowance, share, ALL_SHARE, NEAR_SHARE, HURRIED
        self.spent, self.cost = 0.0, 0.0  # seconds: in all, and of the last recorded unit
        self.units = 0
        self.weight, self.place, self.pick, self.periods = 1, 0, 0, 0
        self.reach = 1  # the largest weight
        self.random = 88172645463325252  # of our own: the program's draws stay as they were

    def spare(self):
        """Costs less from now on."""
        self.share = self.all_share = self.near_share = GPU_SHARE
        self.hurried = GPU_HURRIED

    def next(self, elapsed):
        """The weight of the unit that begins; 0 where it is not recorded."""
        self.units += 1
        self.place += 1
        if self.place >= self.weight:
            self.adjust(elapsed)
            self.place, self.pick = 0, self.draw(self.weight)
        return self.weight if self.place == self.pick else 0

    def pass_by(self):
        """A unit begins that is known not to be recorded."""
        self.units += 1
        self.place += 1

    def ahead(self):
        """How many units are known not to be recorded, behind the one that has begun."""
        return (self.pick if self.place < self.pick else self.weight) - self.place - 1

    def costs(self, seconds):
        self.cost = seconds
        self.spent += seconds

    def left(self, elapsed):
        """Seconds that may yet be spent; below zero where too many were."""
        return self.allowance + self.share * elapsed - self.spent

    def affords(self, elapsed):
        return self.left(elapsed) >= 0

    def adjust(self, elapsed):
        """Decides in how many units one is recorded, from what the last one cost."""
        self.periods += 1
        if self.spent <= self.allowance:
            return
        unit = self.weight * elapsed / self.units
        share = self.all_share if self.weight == 1 else self.share if self.weight < NEAR else self.near_share
        periods = self.hurried if self.spent > DEAR * (self.allowance + self.share * elapsed) else PERIODS
        if self.cost > share * unit and (self.weight == 1 or self.periods >= periods):
            self.weight, self.periods = min(2 * self.weight, 4096), 0
        elif self.cost < self.share * unit / 4 and self.weight > 1:
            self.weight, self.periods = self.weight // 2, 0
        self.reach = max(self.reach, self.weight)

    def draw(self, below):
        x = self.random
        x ^= (x << 13) & 0xFFFFFFFFFFFFFFFF
        x ^= x >> 7
        x ^= (x << 17) & 0xFFFFFFFFFFFFFFFF
        self.random = x
        return x % below


class Stretches(Sampler):
    """Which stretches between looks by the clock are recorded: all, while that costs no more than its allowance or share. Else
    a snapshot has a short one recorded, just before it."""

    def next(self, elapsed):
        return int(self.spent <= max(self.allowance, self.all_share * elapsed))
