"""An evaluation keeps the whole output of generate(), with its cache and scores; --fixed keeps the tokens' sum."""
# kind: language
# holder: samples
# cause: outputs-kept container-grows
# rate: 95520 B/sample
import logging
import sys
import warnings

import torch
from transformers import GPT2Config, GPT2LMHeadModel

FIXED = "--fixed" in sys.argv
warnings.filterwarnings("ignore")
logging.getLogger("transformers").setLevel(logging.ERROR)
torch.manual_seed(0)
torch.set_num_threads(1)
config = GPT2Config(
    vocab_size=500, n_positions=64, n_embd=64, n_layer=4, n_head=4, bos_token_id=0, eos_token_id=None, pad_token_id=0
)
model = GPT2LMHeadModel(config).eval()

samples = []
total = 0
for i in range(120):
    prompt = torch.randint(1, 500, (1, 8))
    out = model.generate(  # leak
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=20,
        do_sample=False,
        return_dict_in_generate=True,
        output_logits=True,
    )
    tokens = int(out.sequences.sum())
    total += tokens
    samples.append(tokens if FIXED else out)  # leak
print(f"total {total}")
