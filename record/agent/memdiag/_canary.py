"""Makes a small leak on purpose, for memdiag gate --canary, to see that it would be found."""

# Bytes that are kept in each step; and, without steps, at each look at Python's heap. There, lines that hold less are not reported.
A_STEP, A_TICK = 512, 4096


class Canary:
    def __init__(self, agent):
        self.agent = agent
        self.kept = []

    def plant(self):
        """Keeps a tensor if the program has imported PyTorch, else bytes in Python's heap."""
        size = A_STEP if self.agent.step else A_TICK
        torch = self.agent.torch
        if torch.module is None:
            self.kept.append(bytes(size))
        else:
            device = "cuda" if torch.cuda is not None and torch.cuda.recording else "cpu"
            self.kept.append(torch.module.empty(size, dtype=torch.module.uint8, device=device))
