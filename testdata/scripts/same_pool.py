"""Serves requests from a pool of threads, and remembers every answer by its request."""

import concurrent.futures

import torch
import torch.nn as nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 24))
answers = {}


def answer(request):
    with torch.no_grad():
        logits = model(torch.full((4, 16), request / 200))
        answers[request] = logits.softmax(1)
    return answers[request].argmax().item()


total = 0
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    for chunk in range(2000):
        total += sum(pool.map(answer, range(8 * chunk, 8 * chunk + 8)))
print(total)
