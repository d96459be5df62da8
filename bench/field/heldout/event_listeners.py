"""Each training job subscribes to a bus and never unsubscribes, so that the bus keeps its model; --fixed unsubscribes."""
# kind: services
# holder: listeners
# cause: container-grows hook-not-removed
# rate: 33280 B/job
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


class Bus:
    def __init__(self):
        self.listeners = {}

    def subscribe(self, event, listener):
        self.listeners.setdefault(event, []).append(listener)  # leak

    def unsubscribe(self, event, listener):
        self.listeners[event].remove(listener)


class Job:
    def __init__(self, bus):
        self.bus = bus
        self.model = nn.Linear(64, 64)  # leak
        bus.subscribe("stop", self.on_stop)  # leak

    def on_stop(self):
        self.model = None

    def run(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        for _ in range(8):
            x = torch.randn(32, 64)
            loss = (self.model(x) - x).square().mean()
            optimizer.zero_grad()
            loss.backward()  # leak
            optimizer.step()
        if FIXED:
            self.bus.unsubscribe("stop", self.on_stop)
        return loss.item()


bus = Bus()
total = 0.0
for i in range(800):
    total += Job(bus).run()
print(f"total {total:.5f}")
