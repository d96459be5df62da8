"""A reader raises one and the same error for each invalid record, whose traceback grows with each raise; --fixed raises a new one."""
# kind: loaders
# holder: INVALID __traceback__ tb_frame tb_next
# cause: error-holds-tensors
# rate: 4096 B/error
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


class InvalidRecord(Exception):
    pass


INVALID = InvalidRecord("the record fails its check")
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)


def read(generator):
    record = torch.randn(32, 32, generator=generator)  # leak
    if record[0, 0] < -0.7:
        raise InvalidRecord("the record fails its check") if FIXED else INVALID  # leak
    return record


generator = torch.Generator().manual_seed(1)
invalid = 0
total = 0.0
for _ in range(25_000):
    try:
        record = read(generator)
    except InvalidRecord:
        invalid += 1
        continue
    loss = (model(record) - record).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
print(f"{invalid} invalid, total {total:.4f}")
