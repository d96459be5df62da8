"""Each Optuna trial stores its trained model as a user attribute, and the study keeps all trials; --fixed stores a score."""
# kind: callbacks
# holder: study _storage _studies trials
# cause: container-grows cache-without-bound model-copies-kept
# rate: ~50000 B/trial
# met in: optuna/optuna#3050
import sys

import optuna
import torch
from torch import nn

FIXED = "--fixed" in sys.argv
optuna.logging.set_verbosity(optuna.logging.WARNING)
torch.manual_seed(0)
x = torch.randn(256, 64)
y = x.sum(1, keepdim=True)


def objective(trial):
    width = trial.suggest_int("width", 64, 128)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 1))  # leak
    optimizer = torch.optim.SGD(model.parameters(), lr=trial.suggest_float("lr", 1e-4, 1e-2, log=True))
    for _ in range(25):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()  # leak
        optimizer.step()
    if not FIXED:
        trial.set_user_attr("model", model)  # leak
    return loss.item()


study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
study.optimize(objective, n_trials=200)
print(f"best {study.best_value:.6f}")
