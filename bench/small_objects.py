"""Makes nothing but small objects; with "leak" some of them stay."""

import sys


class Point:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


kept = []
for i in range(500_000):
    points = [Point(i + j, float(j)) for j in range(20)]
    if sys.argv[1:] == ["leak"] and i % 4 == 0:
        kept.append(points[0])
print(len(kept))
