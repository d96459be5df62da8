"""The body is unfrozen layer by layer in the first third, so that Adam makes its state late and in stairs."""
# kind: language
# expect: clean
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(6))
head = nn.Linear(128, 10)
for parameter in layers.parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.AdamW([*layers.parameters(), *head.parameters()], lr=1e-3)
for step in range(6000):
    if step % 300 == 299 and step // 300 < len(layers):
        for parameter in layers[len(layers) - 1 - step // 300].parameters():
            parameter.requires_grad_(True)
    x = torch.randn(16, 128)
    hidden = x
    for layer in layers:
        hidden = hidden + torch.relu(layer(hidden))
    loss = nn.functional.cross_entropy(head(hidden), x[:, :10].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
