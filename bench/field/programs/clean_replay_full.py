"""A replay memory of deque(maxlen=500) is full in the first tenth of the run; its items go on changing."""
# kind: rl
# expect: clean
import collections
import random

import gymnasium
import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
torch.set_num_threads(1)
env = gymnasium.make("CartPole-v1")
q = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
replay = collections.deque(maxlen=500)
observation = torch.from_numpy(env.reset(seed=0)[0])
episode_lengths = collections.deque(maxlen=100)
length = 0
for step in range(6000):
    if random.random() < 0.2:
        action = random.randrange(2)
    else:
        action = int(q(observation).argmax())
    new, reward, done, _, _ = env.step(action)
    length += 1
    following = torch.from_numpy(new)
    replay.append((observation, action, reward, following, done))
    observation = following
    if done:
        observation = torch.from_numpy(env.reset()[0])
        episode_lengths.append(length)
        length = 0
    if len(replay) >= 32:
        states, actions, rewards, followings, ends = zip(*random.sample(replay, 32))
        with torch.no_grad():
            best = q(torch.stack(followings)).amax(1) * ~torch.tensor(ends)
        chosen = q(torch.stack(states)).gather(1, torch.tensor(actions)[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(chosen, torch.tensor(rewards) + 0.99 * best)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"mean length {sum(episode_lengths) / len(episode_lengths):.3f}")
