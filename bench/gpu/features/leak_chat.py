"""Generates text for chats, and keeps the cache of keys and values of each, which ended."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, set_seed

set_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_positions=64, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)).cuda().eval()
sessions = {}  # holder: sessions
for chat in range(300):
    ids = torch.randint(1, 100, (1, 16), device="cuda")
    with torch.no_grad():
        for _ in range(4):
            out = model(ids, past_key_values=sessions.get(chat), use_cache=True)  # leak
            sessions[chat] = out.past_key_values
            ids = out.logits[:, -1:].argmax(-1)
print(len(sessions))
