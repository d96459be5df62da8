"""Stable-Baselines3's DQN has a replay buffer of 6000 transitions, allocated at the start and first written over in 60 % of the run."""
# kind: rl
# expect: clean
import gymnasium
import numpy as np
import torch
from stable_baselines3 import DQN

torch.set_num_threads(1)


class Picture(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (40, 40), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self.np_random.integers(0, 255, (40, 40), dtype=np.uint8), {}

    def step(self, action):
        self.count += 1
        observation = self.np_random.integers(0, 255, (40, 40), dtype=np.uint8)
        return observation, float(observation[0, 0] > 127) * action, self.count >= 50, False, {}


agent = DQN(
    "MlpPolicy", Picture(), buffer_size=6000, learning_starts=500, train_freq=8, batch_size=16,
    policy_kwargs={"net_arch": [32]}, seed=0, device="cpu",
)
agent.learn(10_000)
print(f"steps {agent.num_timesteps}")
