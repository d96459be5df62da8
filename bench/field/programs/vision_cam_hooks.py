"""Each explanation makes an extractor with a forward hook of its own and never removes it; --fixed removes the hook."""
# kind: vision
# holder: _forward_hooks features
# cause: hook-not-removed activations-kept
# rate: 524288 B/explanation
# met in: frgfm/torch-cam#197
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


class FeatureExtractor:
    def __init__(self, model, layer):
        self.model = model
        self.features = None
        self.handle = layer.register_forward_hook(self.keep)  # leak

    def keep(self, module, inputs, output):
        self.features = output.detach().clone()  # leak

    def map_of(self, image):
        self.model(image)
        return self.features.mean(1).amax((1, 2))

    def close(self):
        self.handle.remove()


body = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU())
model = nn.Sequential(body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
heat = 0.0
for step in range(600):
    x = torch.randn(4, 3, 32, 32)
    loss = nn.functional.cross_entropy(model(x), torch.randint(0, 10, (4,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        extractor = FeatureExtractor(model, body)
        with torch.no_grad():
            heat += extractor.map_of(x[:1]).item()
        if FIXED:
            extractor.close()
print(f"loss {loss.item():.6f} heat {heat:.4f}")
