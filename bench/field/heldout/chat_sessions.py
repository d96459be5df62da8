"""A chat service keeps the key-value cache of each session and never ends one; --fixed drops it with the last turn."""
# kind: language
# holder: sessions
# cause: cache-without-bound container-grows
# rate: 65536 B/session
import sys
import warnings

import torch
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

FIXED = "--fixed" in sys.argv
warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
model = GPT2LMHeadModel(GPT2Config(vocab_size=200, n_positions=64, n_embd=64, n_layer=4, n_head=4)).eval()
sessions = {}


@torch.no_grad()
def turn(session, prompt, new_tokens=12):
    cache = sessions.get(session)
    if cache is None:
        cache = DynamicCache()
    ids = prompt
    reply = []
    for _ in range(new_tokens):
        out = model(input_ids=ids, past_key_values=cache, use_cache=True)  # leak
        ids = out.logits[:, -1].argmax(-1, keepdim=True)
        reply.append(ids.item())
    sessions[session] = cache  # leak
    return reply


total = 0
for request in range(150):
    for _ in range(2):
        prompt = torch.randint(0, 200, (1, 5))
        total += sum(turn(f"user-{request}", prompt))
    if FIXED:
        del sessions[f"user-{request}"]
print(f"total {total}")
