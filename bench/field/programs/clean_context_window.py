"""A language model's context grows token by token to its full length in the first half of the run, and is cropped from then on."""
# kind: language
# expect: clean
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
embedding = nn.Embedding(50, 16)
head = nn.Linear(16, 50)
optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], lr=1e-2)
context = torch.zeros(1, dtype=torch.long)
for step in range(6000):
    logits = head(embedding(context[-16:]).mean(0))
    token = torch.randint(0, 50, (1,))
    loss = nn.functional.cross_entropy(logits[None], token)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    context = torch.cat([context, token])[-2500:]
print(f"loss {loss.item():.5f}")
