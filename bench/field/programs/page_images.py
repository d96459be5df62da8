"""Pages are opened with Pillow and rotated, and the list for the report keeps the images; --fixed keeps the last."""
# kind: vision
# holder: pages
# cause: container-grows host-only outputs-kept
# rate: 12288 B/page
# met in: python-pillow/Pillow#7935
import io
import sys

import numpy as np
from PIL import Image

FIXED = "--fixed" in sys.argv
rng = np.random.default_rng(0)
files = []
for _ in range(20):
    to = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(to, "PNG")
    files.append(to.getvalue())
pages = []
total = 0
for number in range(25000):
    page = Image.open(io.BytesIO(files[number % 20])).resize((64, 64)).rotate(90)  # leak
    total += page.getpixel((3, 5))[0]
    if FIXED:
        pages.clear()
    pages.append(page)  # leak
print(f"total {total}")
