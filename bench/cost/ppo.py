"""Stable-Baselines3's PPO on CartPole; with "leak" a callback keeps every observation of every step."""

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from steps import leaks, step


class Keep(BaseCallback):
    def __init__(self):
        super().__init__()
        self.kept = []

    def _on_step(self):
        if leaks:
            self.kept.append(self.locals["obs_tensor"])
            self.kept.append([float(v) for v in self.locals["new_obs"][0]])
        return True

    def _on_rollout_end(self):
        step()


PPO("MlpPolicy", "CartPole-v1", n_steps=256, n_epochs=4, seed=0, device="cpu").learn(6400, callback=Keep())
