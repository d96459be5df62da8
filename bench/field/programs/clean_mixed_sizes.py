"""Images of ever other sizes are resized and cut with Pillow and NumPy; the twenty newest wait in a queue to be trained on."""
# kind: loaders
# expect: clean
import collections

import numpy as np
from PIL import Image

rng = np.random.default_rng(0)
waiting = collections.deque()
total = 0.0
for number in range(9000):
    height, width = (int(n) for n in rng.integers(32, 320, 2))
    image = Image.fromarray(rng.integers(0, 255, (height, width, 3), dtype=np.uint8)).resize((96, 96))
    waiting.append(np.asarray(image, dtype=np.float32) / 255)
    if len(waiting) > int(rng.integers(10, 20)):
        while len(waiting) > 5:
            total += float(waiting.popleft().mean())
print(f"total {total:.4f}")
