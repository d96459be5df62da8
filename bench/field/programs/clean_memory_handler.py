"""A MemoryHandler holds up to 500 log records and then flushes them to a handler that counts."""
# kind: loggers
# expect: clean
import logging
import logging.handlers

import torch
from torch import nn


class Count(logging.Handler):
    records = 0

    def emit(self, record):
        Count.records += 1


torch.manual_seed(0)
torch.set_num_threads(1)
log = logging.getLogger("train")
log.setLevel(logging.INFO)
log.propagate = False
log.addHandler(logging.handlers.MemoryHandler(capacity=500, target=Count()))
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(12_000):
    x = torch.randn(32, 64)
    out = model(x)
    loss = (out - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log.info("step %d norms %s", step, out.detach().norm(dim=1))
print(f"loss {loss.item():.6f} records {Count.records // 500 * 500}")
