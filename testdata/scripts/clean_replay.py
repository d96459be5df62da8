"""Q-learning on a toy chain with a replay buffer that drops the oldest transitions."""

import collections
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

CAPACITY = 128


class Replay:
    def __init__(self, capacity):
        self.items = collections.deque(maxlen=capacity)

    def push(self, *transition):
        self.items.append(transition)

    def sample(self, n):
        return [torch.stack(column) for column in zip(*random.sample(self.items, n))]


def main():
    random.seed(0)
    torch.manual_seed(0)
    q, target = (nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2)) for _ in range(2))
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
    replay, state = Replay(CAPACITY), torch.zeros(8)
    for step in range(400):
        with torch.no_grad():
            action = q(state).argmax() if random.random() > 0.2 else torch.tensor(random.randrange(2))
        following = torch.roll(state, 1) + 0.1 * torch.randn(8)
        replay.push(state, action, following.sum(), following)
        state = following if step % 20 else torch.zeros(8)
        if len(replay.items) < 32:
            continue
        s, a, r, n = replay.sample(32)
        with torch.no_grad():
            goal = r + 0.9 * target(n).max(1).values
        loss = F.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            target.load_state_dict(q.state_dict())
    print(f"{loss.item():.4f}")


main()
