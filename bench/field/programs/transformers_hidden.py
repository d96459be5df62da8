"""Hidden states of a small BERT are kept for a probe; --fixed keeps a mean of the last layer."""
# kind: language
# holder: probe
# cause: container-grows activations-kept outputs-kept
# rate: 73728 B/step
import sys
import warnings

import torch
from transformers import BertConfig, BertModel

FIXED = "--fixed" in sys.argv
warnings.filterwarnings("ignore")
torch.manual_seed(0)
model = BertModel(
    BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
probe = []
for step in range(500):
    ids = torch.randint(0, 100, (4, 24))
    out = model(ids, output_hidden_states=True)  # leak
    loss = out.last_hidden_state.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    states = [hidden.detach() for hidden in out.hidden_states]
    probe.append(states[-1].mean().item() if FIXED else states)  # leak
print(f"loss {loss.item():.6f}")
