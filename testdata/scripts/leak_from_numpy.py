"""A rollout's observations come from NumPy by torch.as_tensor, as in reinforcement learning; a callback keeps them all."""

import numpy as np
import torch
import torch.nn as nn


class Callback:
    def __init__(self):
        self.observations = []  # holder: observations

    def on_step(self, observation):
        self.observations.append(observation)


def main():
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    policy = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(policy.parameters(), lr=1e-3)
    callback = Callback()
    for _ in range(100):
        rollout = []
        for _ in range(8):
            observation = torch.as_tensor(random.random((1, 4), dtype=np.float32))  # leak
            callback.on_step(observation)
            rollout.append(observation)
        loss = policy(torch.cat(rollout)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.4f}, {len(callback.observations)} kept")


main()
