"""Fits a line by gradient descent in plain Python and remembers the residuals of every iteration."""

import random
import time

log = []  # holder: log


def residuals(points, a, b):
    return [a * x + b - y for x, y in points]  # leak


def fit(points, iterations, rate):
    a = b = 0.0
    for _ in range(iterations):
        r = residuals(points, a, b)
        a -= rate * sum(e * x for e, (x, _) in zip(r, points)) / len(points)
        b -= rate * sum(r) / len(points)
        log.append(r)
        time.sleep(0.002)  # the data would come from somewhere
    return a, b


random.seed(0)
data = [(x, 3 * x + 1 + random.gauss(0, 0.1)) for x in (random.random() for _ in range(300))]
print("%.3f %.3f" % fit(data, 800, 0.5))
