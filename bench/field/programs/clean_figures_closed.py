"""A figure is drawn every 25 steps, saved and closed, and its image is kept for the newest ten."""
# kind: plotting
# expect: clean
import collections
import io

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)
images = collections.deque(maxlen=10)
weight = np.zeros(16)
errors = []
for step in range(1500):
    x = rng.normal(size=(64, 16))
    error = x @ weight - x.sum(1)
    weight -= 0.01 * x.T @ error / len(x)
    errors.append(float((error**2).mean()))
    if step % 25 == 24:
        fig, ax = plt.subplots()
        ax.semilogy(errors[-200:])
        image = io.BytesIO()
        fig.savefig(image, format="png", dpi=50)
        images.append(image.getvalue())
        plt.close(fig)
print(f"error {errors[-1]:.3e} images {len(images)}")
