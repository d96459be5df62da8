"""A curriculum lengthens the sequences from 8 to 64 in the first third, so that each step takes more than the last."""
# kind: language
# expect: clean
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
embedding = nn.Embedding(100, 32)
layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
head = nn.Linear(32, 100)
parameters = [*embedding.parameters(), *layer.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.05)
for step in range(2000):
    length = min(64, 8 + step // 12)
    ids = torch.randint(0, 100, (4, length))
    loss = nn.functional.cross_entropy(head(layer(embedding(ids))).flatten(0, 1), ids.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
