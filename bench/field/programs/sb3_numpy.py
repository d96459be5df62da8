"""A Stable-Baselines3 callback keeps NumPy's observations as tensors; --fixed keeps the last 100."""
# kind: rl
# holder: seen
# cause: container-grows
# rate: 16 B/step
import collections
import sys

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

FIXED = "--fixed" in sys.argv
torch.set_num_threads(1)


class Keep(BaseCallback):
    def __init__(self):
        super().__init__()
        self.seen = collections.deque(maxlen=100) if FIXED else []

    def _on_step(self):
        self.seen.append(torch.from_numpy(self.locals["new_obs"].copy()))  # leak
        return True


model = PPO("MlpPolicy", "CartPole-v1", n_steps=128, batch_size=64, n_epochs=2, seed=0, device="cpu")
model.learn(8000, callback=Keep())
print(f"weights {sum(p.sum().item() for p in model.policy.parameters()):.4f}")
