"""The cache of a system prompt is passed with each question, which it takes in for good; --fixed passes a copy."""
# kind: language
# holder: prefix
# cause: cache-regrown container-grows cache-without-bound
# rate: 12288 B/question
import copy
import sys

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
config = LlamaConfig(
    vocab_size=256,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=4,
    max_position_embeddings=32_768,
)
model = LlamaForCausalLM(config).eval()
prefix = DynamicCache(config=config)
asked = 0
with torch.no_grad():
    model(torch.randint(256, (1, 128)), past_key_values=prefix, use_cache=True)
    for number in range(400):
        cache = copy.deepcopy(prefix) if FIXED else prefix
        question = torch.randint(256, (1, 4))
        answer = []
        token = model(question, past_key_values=cache, use_cache=True).logits[:, -1:].argmax(-1)  # leak
        for _ in range(8):
            answer.append(token.item())
            token = model(token, past_key_values=cache, use_cache=True).logits[:, -1:].argmax(-1)  # leak
        asked += question.sum().item() + len(answer)
print(f"asked {asked}")
