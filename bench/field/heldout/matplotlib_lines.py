"""A live plot adds a line to the same axes each refresh; --fixed sets the data of one line."""
# kind: plotting
# holder: _children axes
# cause: container-grows
# rate: ~8000 B/refresh
import io
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

FIXED = "--fixed" in sys.argv
rng = np.random.default_rng(0)
fig, axes = plt.subplots()
axes.set_xlim(0, 200)
axes.set_ylim(-10, 10)
line = None
values = np.zeros(200)
weight = 0.0
for refresh in range(1500):
    x = rng.normal(size=200)
    for _ in range(20):
        weight -= 0.01 * ((weight - 3) * (x**2).mean())
    values = np.append(values[1:], weight + rng.normal())
    if FIXED and line is not None:
        line.set_ydata(values)
    else:
        (line,) = axes.plot(values, color="tab:blue")  # leak
    if refresh % 15 == 14:
        fig.savefig(io.BytesIO(), format="png", dpi=40)
print(f"weight {weight:.6f}")
