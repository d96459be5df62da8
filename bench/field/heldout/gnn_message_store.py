"""A temporal graph network stores messages per node until the node's next event, which is rare; --fixed keeps the newest."""
# kind: graphs
# holder: messages
# cause: container-grows queue-without-bound
# rate: 10240 B/step
import collections
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
nodes = 500


class MessageStore:
    def __init__(self):
        self.messages = collections.defaultdict(list)

    def add(self, node, message):
        waiting = self.messages[node]
        if FIXED:
            waiting.clear()
        waiting.append(message)  # leak

    def newest(self, wanted):
        return torch.stack([self.messages[n][-1] if self.messages[n] else torch.zeros(64) for n in wanted])


memory = nn.Embedding(nodes, 64)
encode = nn.Linear(128, 64)
head = nn.Linear(128, 1)
optimizer = torch.optim.SGD([*memory.parameters(), *encode.parameters(), *head.parameters()], lr=0.01)
store = MessageStore()
for step in range(2500):
    source = torch.randint(0, nodes, (40,))
    target = torch.randint(0, nodes, (40,))
    received = store.newest(target.tolist())
    score = head(torch.cat([memory(source), received], 1))
    sent = encode(torch.cat([memory(source), memory(target)], 1))
    loss = nn.functional.binary_cross_entropy_with_logits(score, torch.ones(40, 1)) + sent.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for node, message in zip(target.tolist(), sent.detach()):
        store.add(node, message.clone())  # leak
print(f"loss {loss.item():.6f}")
