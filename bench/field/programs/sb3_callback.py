"""A Stable-Baselines3 callback keeps the observation tensor of each step; --fixed keeps a mean."""
# kind: rl
# holder: observations
# cause: container-grows activations-kept
# rate: 16 B/step
import sys

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

FIXED = "--fixed" in sys.argv
torch.set_num_threads(1)


class Keep(BaseCallback):
    def __init__(self):
        super().__init__()
        self.observations = []

    def _on_step(self):
        observation = self.locals["obs_tensor"]
        self.observations.append(observation.mean().item() if FIXED else observation)  # leak
        return True


model = PPO("MlpPolicy", "CartPole-v1", n_steps=128, batch_size=64, n_epochs=2, seed=0, device="cpu")
model.learn(8000, callback=Keep())  # leak
print(f"weights {sum(p.sum().item() for p in model.policy.parameters()):.4f}")
