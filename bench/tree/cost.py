"""Processor time of a training that is mostly loading, alone and recorded by turns: python bench/tree/cost.py MEMDIAG [TURNS [BATCHES]]."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile

PROGRAM = """
import hashlib, sys
import torch
class Hashes(torch.utils.data.Dataset):
    def __len__(self):
        return 8 * int(sys.argv[1])
    def __getitem__(self, i):
        made = hashlib.sha256(bytes(2_000_000)).digest()
        return torch.tensor([float(made[0]), float(i % 7)])
if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Linear(2, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for batch in torch.utils.data.DataLoader(Hashes(), batch_size=8, num_workers=2):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
"""


def cost(args):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(args, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, OMP_NUM_THREADS="1"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    memdiag, turns, batches = sys.argv[1], *([int(n) for n in sys.argv[2:]] + [3, 1800][len(sys.argv) - 2:])
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "train.py")
        with open(program, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        ratios = []
        for turn in range(turns):
            alone = cost([sys.executable, program, str(batches)])
            recorded = cost([memdiag, "record", "-o", os.path.join(folder, str(turn)), "--", sys.executable, program, str(batches)])
            ratios.append(recorded / alone)
            print("%.2f s alone, %.2f s recorded: %.3f" % (alone, recorded, ratios[-1]), flush=True)
        print("median %.3f" % statistics.median(ratios))


main()
