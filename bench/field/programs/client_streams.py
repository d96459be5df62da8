"""Each client's stream is a generator that waits in a list with its batch, since clients leave before the end; --fixed closes it."""
# kind: loaders
# holder: streams
# cause: container-grows
# rate: 4096 B/client
import itertools
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(32, 32)
streams = []


def stream(client):
    generator = torch.Generator().manual_seed(client)
    while True:
        batch = torch.randn(32, 32, generator=generator)  # leak
        for part in batch.split(4):
            yield part


total = 0.0
for client in range(40_000):
    parts = stream(client)
    streams.append(parts)  # leak
    with torch.no_grad():
        for part in itertools.islice(parts, 5):
            total += model(part).mean().item()
    if FIXED:
        streams.pop().close()
print(f"total {total:.5f}")
