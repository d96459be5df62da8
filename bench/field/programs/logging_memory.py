"""A MemoryHandler of huge capacity keeps log records, whose arguments are tensors; --fixed flushes every 64."""
# kind: loggers
# holder: buffer
# cause: values-kept-as-tensors container-grows
# rate: 128 B/step
import logging
import logging.handlers
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
log = logging.getLogger("train")
log.setLevel(logging.INFO)
log.propagate = False
log.addHandler(
    logging.handlers.MemoryHandler(
        capacity=64 if FIXED else 1_000_000_000,
        flushLevel=logging.ERROR,
        target=logging.NullHandler(),
        flushOnClose=False,
    )
)
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(8000):
    x = torch.randn(32, 64)
    out = model(x)
    loss = (out - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    norm = out.detach().norm(dim=1)  # leak
    log.info("norms %s", norm)  # leak
print(f"loss {loss.item():.6f}")
