"""Chooses the steps to watch, so that watching costs no more than a share of the time."""

# The number of units per watched unit doubles until the cost is within its share, each time after PERIODS watched units. It doubles after
# HURRIED if they have cost more than DEAR times their limit: a reinforcement learner has some hundred steps, of 40 ms each.
PERIODS, HURRIED, DEAR = 8, 3, 2
# All units are watched if that costs no more than ALL_SHARE, since unseen storages cost a census at each snapshot. Fewer than one in NEAR
# are watched only if more would cost over NEAR_SHARE: a few watched steps show little of what is rare.
ALL_SHARE, NEAR, NEAR_SHARE = 0.03, 8, 0.05
# For a program that uses a GPU: all three shares, since PyTorch's own record has most of what there is to see; and HURRIED. On an H200, a
# step of 17 ms takes 14 ms longer if it is watched.
GPU_SHARE, GPU_HURRIED = 0.005, 1


class Sampler:
    """Which units of a kind are watched: all while an allowance lasts, then one in so many.

    The watched unit stands for all of them. It is chosen at random, so that nothing periodic is always missed. The number doubles at most
    once in several periods, so that one unit never weighs much compared with all before it."""

    def __init__(self, allowance, share):
        self.allowance, self.share, self.all_share, self.near_share, self.hurried = allowance, share, ALL_SHARE, NEAR_SHARE, HURRIED
        self.spent, self.cost = 0.0, 0.0  # seconds: of all watched units, and of the last one
        self.units = 0
        self.weight, self.place, self.pick, self.periods = 1, 0, 0, 0
        self.reach = 1  # the largest weight
        self.random = 88172645463325252  # our own generator: the program's random numbers do not change

    def spare(self):
        """Spends less from now on."""
        self.share = self.all_share = self.near_share = GPU_SHARE
        self.hurried = GPU_HURRIED

    def next(self, elapsed):
        """The weight of the unit that begins; 0 if it is not watched."""
        self.units += 1
        self.place += 1
        if self.place >= self.weight:
            self.adjust(elapsed)
            self.place, self.pick = 0, self.draw(self.weight)
        return self.weight if self.place == self.pick else 0

    def pass_by(self):
        """A unit begins that ahead() said is not watched."""
        self.units += 1
        self.place += 1

    def ahead(self):
        """How many units after the current one are certainly not watched."""
        return (self.pick if self.place < self.pick else self.weight) - self.place - 1

    def costs(self, seconds):
        self.cost = seconds
        self.spent += seconds

    def left(self, elapsed):
        """Seconds that may still be spent; negative if too many were."""
        return self.allowance + self.share * elapsed - self.spent

    def affords(self, elapsed):
        return self.left(elapsed) >= 0

    def adjust(self, elapsed):
        """Decides in how many units one is watched, from what the last watched one cost."""
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
    """Which stretches between looks by the clock are watched: all, while that costs no more than the allowance or share. After that, a
    snapshot has a short stretch watched just before it."""

    def next(self, elapsed):
        return int(self.spent <= max(self.allowance, self.all_share * elapsed))
