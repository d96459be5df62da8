"""What the agent, and a part of it, may cost."""

# Seconds of the processor that all of the agent may take, and the share of the process's life. Each part has an allowance of
# its own, of which a short program would pay the sum.
ALLOWANCE, SHARE = 0.5, 0.08


class Budget:
    """Seconds of the processor that something may take: an allowance, and a share of the time of the agent's elapsed()."""

    def __init__(self, agent, allowance, share):
        self.agent, self.allowance, self.share = agent, allowance, share
        self.spent = self.last = 0.0  # in all, and the last time, where that is asked for

    def left(self):
        """Seconds that it may yet take; below zero where it has taken too many."""
        return min(self.allowance + self.share * self.agent.elapsed() - self.spent, self.agent.left())

    def affords(self, seconds=0.0):
        return self.left() >= seconds
