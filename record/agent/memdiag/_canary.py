"""A small leak on purpose, which memdiag gate --canary asks for, to see that it would be found."""

# What is kept each step; and, where nothing counts steps, each time that Python's heap is looked at,
# of which lines that hold less are left out.
A_STEP, A_TICK = 512, 4096


class Canary:
    def __init__(self, agent):
        self.agent = agent
        self.kept = []

    def plant(self):
        """Keeps a tensor, where the program trains with PyTorch; else some of Python's heap."""
        size = A_STEP if self.agent.step else A_TICK
        torch = self.agent.torch
        if torch.module is None:
            self.kept.append(bytes(size))
        else:
            device = "cuda" if torch.cuda is not None and torch.cuda.recording else "cpu"
            self.kept.append(torch.module.empty(size, dtype=torch.module.uint8, device=device))
