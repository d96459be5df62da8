"""REINFORCE lists each step's entropy, with its graph, for a report that takes their mean; --fixed lists numbers."""
# kind: rl
# holder: entropies
# cause: graph-retained values-kept-as-tensors
# rate: ~4000 B/step
import sys

import gymnasium
import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.log_probs = []
        self.entropies = []

    def act(self, observation):
        chances = torch.distributions.Categorical(logits=self.net(observation))  # leak
        action = chances.sample()
        self.log_probs.append(chances.log_prob(action))
        entropy = chances.entropy()  # leak
        self.entropies.append(entropy.item() if FIXED else entropy)  # leak
        return action.item()


env = gymnasium.make("CartPole-v1")
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(150):
    observation, _ = env.reset(seed=episode)
    rewards = []
    done = False
    while not done and len(rewards) < 60:
        action = policy.act(torch.from_numpy(observation))
        observation, reward, done, _, _ = env.step(action)
        rewards.append(reward)
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(policy.log_probs) * (returns - returns.mean())).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    policy.log_probs.clear()
recent = [float(entropy) for entropy in policy.entropies[-100:]]
print(f"entropy {sum(recent) / len(recent):.5f}")
