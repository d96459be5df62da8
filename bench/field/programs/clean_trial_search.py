"""Optuna searches thirty trials, each with a new model, pruned halfway if it is bad; only scores remain."""
# kind: training
# expect: clean
import optuna
import torch
from torch import nn

optuna.logging.set_verbosity(optuna.logging.WARNING)
torch.set_num_threads(1)


def objective(trial):
    torch.manual_seed(trial.number)
    width = trial.suggest_int("width", 16, 128)
    model = nn.Sequential(nn.Linear(32, width), nn.Tanh(), nn.Linear(width, 32))
    optimizer = torch.optim.Adam(model.parameters(), lr=trial.suggest_float("rate", 1e-4, 1e-1, log=True))
    for epoch in range(8):
        for _ in range(40):
            x = torch.randn(32, 32)
            loss = (model(x) - x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        trial.report(loss.item(), epoch)
        if epoch == 3 and loss.item() > 0.9:
            raise optuna.TrialPruned()
    return loss.item()


study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
study.optimize(objective, n_trials=30)
print(f"best {study.best_value:.5f}")
