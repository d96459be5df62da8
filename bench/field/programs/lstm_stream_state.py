"""An LSTM reads a stream without no_grad(), and its state carries the graph of all it has read; --fixed detaches it."""
# kind: language
# holder: state
# cause: graph-retained pending-graph
# rate: 30784 B/step
# met in: pytorch/pytorch#2198
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(500, 64)
        self.cell = nn.LSTMCell(64, 128)
        self.head = nn.Linear(128, 500)

    def forward(self, tokens, state):
        h, c = self.cell(self.embedding(tokens), state)  # leak
        return self.head(h), (h, c)  # leak


def read(reader, steps):
    source = torch.Generator().manual_seed(1)
    state = (torch.zeros(8, 128), torch.zeros(8, 128))
    surprise = 0.0
    tokens = torch.zeros(8, dtype=torch.long)
    for _ in range(steps):
        logits, state = reader(tokens, state)  # leak
        if FIXED:
            state = tuple(part.detach() for part in state)
        tokens = torch.randint(0, 500, (8,), generator=source)  # leak
        surprise += nn.functional.cross_entropy(logits, tokens).item()
    return surprise / steps


print(f"surprise {read(Reader().eval(), 6000):.5f}")
