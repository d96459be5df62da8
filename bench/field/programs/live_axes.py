"""A live plot draws the whole curve anew onto the same axes, which keep every old line; --fixed changes the line's data."""
# kind: plotting
# holder: _children lines axes
# cause: container-grows
# rate: ~20000 B/draw
import io
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

FIXED = "--fixed" in sys.argv
rng = np.random.default_rng(0)
figure, axes = plt.subplots(figsize=(3, 2))
losses = np.full(400, np.nan)
line = None
total = 0.0
for step in range(12000):
    losses[step % 400] = rng.normal()
    if step % 8 == 0:
        work = np.linalg.svd(rng.normal(size=(110, 110)))[1][0]
        if FIXED and line is not None:
            line.set_ydata(losses)
        else:
            (line,) = axes.plot(np.arange(400), losses)  # leak
        total += line.get_ydata()[0] + work
figure.savefig(io.BytesIO(), format="png", dpi=40)
print(f"total {total:.5f}")
