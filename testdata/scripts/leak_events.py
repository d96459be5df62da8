"""A perceptron without torch or numpy, and a log of events that nobody reads."""

import random


class Log:
    def __init__(self):
        self.events = []

    def tell(self, kind, **about):
        self.events.append({"kind": kind, "text": "%s: %r" % (kind, about)})  # leak


log = Log()  # holder: log


def main():
    random.seed(0)
    weights, mistakes = [0.0] * 40, 0
    for step in range(90_000):
        x = [random.gauss(0, 1) for _ in weights]
        y = 1 if x[0] + x[1] > 0 else -1
        if y * sum(a * b for a, b in zip(x, weights)) <= 0:
            mistakes += 1
            weights = [w + 0.1 * y * a for w, a in zip(weights, x)]
        log.tell("step", number=step, label=y)
    print(mistakes, "%.6f" % sum(weights))


main()
