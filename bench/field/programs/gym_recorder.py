"""A wrapper of a gymnasium environment records each observation, and reset() begins a new episode in the same list; --fixed clears it."""
# kind: rl
# holder: trajectory
# cause: container-grows outputs-kept
# rate: 256 B/step
import sys

import gymnasium
import numpy as np

FIXED = "--fixed" in sys.argv


class Corridor(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (64,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.look(), {}

    def look(self):
        return self.np_random.uniform(-1, 1, 64).astype(np.float32)  # leak

    def step(self, action):
        self.at += 1
        return self.look(), float(action), self.at >= 64, False, {}


class Recorder(gymnasium.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.trajectory = []

    def reset(self, **options):
        if FIXED:
            self.trajectory.clear()
        observation, info = self.env.reset(**options)
        self.trajectory.append(observation)  # leak
        return observation, info

    def step(self, action):
        observation, *rest = self.env.step(action)
        self.trajectory.append(observation)  # leak
        return observation, *rest


env = Recorder(Corridor())
total = 0.0
for episode in range(4000):
    observation, _ = env.reset(seed=episode)
    done = False
    while not done:
        observation, reward, done, _, _ = env.step(int(observation[0] > 0))
        total += reward
print(f"total {total}")
