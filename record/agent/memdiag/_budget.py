"""What a part of the agent may cost."""


class Budget:
    """Seconds of the processor that something may take: an allowance, and a share of the time of the agent's elapsed()."""

    def __init__(self, agent, allowance, share):
        self.agent, self.allowance, self.share = agent, allowance, share
        self.spent = self.last = 0.0  # in all, and the last time, where that is asked for

    def left(self):
        """Seconds that it may yet take; below zero where it has taken too many."""
        return self.allowance + self.share * self.agent.elapsed() - self.spent

    def affords(self, seconds=0.0):
        return self.left() >= seconds
