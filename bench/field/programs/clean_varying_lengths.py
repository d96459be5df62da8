"""A GRU reads batches of ever other lengths, so that each step allocates other sizes than the one before."""
# kind: language
# expect: clean
import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
torch.set_num_threads(1)
embedding = nn.Embedding(200, 32)
gru = nn.GRU(32, 64, batch_first=True)
head = nn.Linear(64, 200)
parameters = [*embedding.parameters(), *gru.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
for step in range(600):
    ids = torch.randint(0, 200, (random.randint(2, 12), random.randint(5, 60)))
    hidden, _ = gru(embedding(ids))
    loss = nn.functional.cross_entropy(head(hidden[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
print(f"loss {loss.item():.6f}")
