"""A net that tensorboardX is told of at each step; with "leak" a log of its own keeps a row of every step."""

import tempfile

import torch
from steps import leaks, steps
from tensorboardX import SummaryWriter

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
log = []
with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    for i in steps(700):
        x, y = torch.randn(32, 32), torch.randint(10, (32,))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        writer.add_scalar("loss", loss.item(), i)
        for name, p in net.named_parameters():
            writer.add_histogram(name, p.detach().numpy(), i)
        if leaks:
            log.append({name: p.detach().flatten().tolist() for name, p in net.named_parameters() if "bias" in name})
