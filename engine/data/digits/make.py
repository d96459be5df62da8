"""Makes digits.bin.gz of scikit-learn's copy of the UCI test set of handwritten digits.

    pip download --no-deps scikit-learn==1.9.1
    unzip scikit_learn-1.9.1-*.whl sklearn/datasets/data/digits.csv.gz
    python make.py sklearn/datasets/data/digits.csv.gz digits.bin.gz

Each line of the source is 64 pixels of 0 to 16 and a label of 0 to 9, as decimal
numbers. The result holds the same numbers as bytes: all labels, then all values of
the first pixel, of the second, and so on, since like values side by side are
packed best.
"""

import gzip
import sys
import zlib

source, target = sys.argv[1:]
with gzip.open(source, "rt") as lines:
    rows = [[int(float(number)) for number in line.split(",")] for line in lines]
assert len(rows) == 1797 and all(len(row) == 65 for row in rows)
assert all(0 <= pixel <= 16 for row in rows for pixel in row[:64])
assert all(0 <= row[64] <= 9 for row in rows)
columns = bytes(row[i] for i in [64, *range(64)] for row in rows)
with open(target, "wb") as out:
    # No name and no time in the header: the same bytes come of every run.
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    out.write(packer.compress(columns) + packer.flush())
