"""A decoder's key-value cache grows with each token of a sequence and is dropped with the sequence."""
# kind: language
# expect: clean
import warnings

import torch
from transformers import GPT2Config, GPT2LMHeadModel

warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
model = GPT2LMHeadModel(GPT2Config(vocab_size=200, n_positions=128, n_embd=64, n_layer=2, n_head=4)).eval()
total = 0
with torch.inference_mode():
    for sequence in range(60):
        ids = torch.randint(0, 200, (2, 4))
        cache = None
        for _ in range(30):
            out = model(input_ids=ids, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            ids = out.logits[:, -1].argmax(-1, keepdim=True)
            total += int(ids.sum())
print(f"total {total}")
