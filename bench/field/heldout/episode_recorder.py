"""A gymnasium wrapper keeps the frames of every episode; --fixed keeps those of the last three."""
# kind: rl
# holder: episodes
# cause: container-grows
# rate: 32768 B/episode
# met in: ray-project/ray#21041
import collections
import sys

import gymnasium
import numpy as np

FIXED = "--fixed" in sys.argv


class Corridor(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (16, 16), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.frame(), {}

    def frame(self):
        frame = np.zeros((16, 16), np.float32)
        frame[:, self.place] = 1
        return frame

    def step(self, action):
        self.place = min(15, max(0, self.place + (1 if action else -1)))
        return self.frame(), float(self.place), False, False, {}


class Recorder(gymnasium.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.episodes = collections.deque(maxlen=3) if FIXED else []
        self.frames = []

    def reset(self, **kwargs):
        if self.frames:
            self.episodes.append(np.stack(self.frames))  # leak
            self.frames = []
        return self.env.reset(**kwargs)

    def step(self, action):
        result = self.env.step(action)
        self.frames.append(result[0])
        return result


env = Recorder(Corridor())
values = np.zeros((16, 2))
rng = np.random.default_rng(0)
for episode in range(6000):
    env.reset(seed=episode)
    place = 0
    for _ in range(32):
        action = int(values[place].argmax()) if rng.random() > 0.2 else int(rng.integers(2))
        observation, reward, *_ = env.step(action)
        next_place = int(observation[0].argmax())
        values[place, action] += 0.1 * (reward + 0.9 * values[next_place].max() - values[place, action])
        place = next_place
print(f"value {values.sum():.6f}")
