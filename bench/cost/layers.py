"""A deep transformer of 292 parameters, trained with Adam; with "leak" every loss keeps its graph."""

import torch
from steps import leaks, steps

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
model = torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 24, enable_nested_tensor=False), torch.nn.Linear(32, 8), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
losses = []
for i in steps(150):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 16, 32)).square().mean()
    loss.backward()
    optimizer.step()
    if leaks:
        losses.append(loss)
