"""What a walk to holders takes in a program of about a million objects, by its bound in seconds.

    PYTHONPATH=record/agent python3 bench/walk.py
"""

import gc
import time
import types

from memdiag import _holders, _walk


class Node:
    def __init__(self, i):
        self.i, self.kids, self.about = i, [], {"n": i, "t": (i, str(i))}


tree = {}
for i in range(200_000):
    tree.setdefault(i // 300, {})[i] = Node(i)
agent = types.SimpleNamespace(step=1, ticks=1, elapsed=lambda: 0.0)
source = types.SimpleNamespace(module=None, table={})
print(len(gc.get_objects()), "objects that the collector knows")
for seconds in (_walk.SECONDS, _holders.WINDOW, 100):
    search = _holders.Search(agent, source)
    begun = time.process_time()
    search.walk({}, {}, {("no line",): 1}, seconds)
    print("bound %.2f s: %.3f s%s" % (seconds, time.process_time() - begun, ", cut short" if search.cut else ""))
