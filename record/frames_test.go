package record_test

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// TestFramesOfOtherThreadsAreReadWithoutACollection: in Python 3.11, reading a frame may run the collector. What that called let other
// threads run on, and Python wrote to frames that had ended.
func TestFramesOfOtherThreadsAreReadWithoutACollection(t *testing.T) {
	heavytest.Skip(t, "threads that work for 5 s")
	t.Parallel()
	agentProgram(t, `
import gc, sys, threading, time, types
from memdiag import _autograd, _length, _own

inside, hits = False, 0
def collects(phase, info):
    global hits
    if inside and threading.get_ident() == me:
        hits += 1
        gc.set_threshold(0)
        time.sleep(0.0003)  # lets the other threads run
me = threading.get_ident()
gc.callbacks.append(collects)

def outer(x):
    return short(x) + long(x)
def short(x):
    return inner(x)
def inner(x):
    return x
def long(x):
    a = b = c = d = e = f = g = h = i = j = k = l = m = n = o = p = q = r = s = t = u = v = w = y = z = x
    return inner(a)
def work():
    while not stop:
        outer(1)

stop = False
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads:
    t.start()
sys.setswitchinterval(1e-5)
own = types.SimpleNamespace(agent=types.SimpleNamespace(ticker=types.SimpleNamespace(thread=None)))
def names():
    try:
        _length.scope("inner.<locals>", "x")
    except LookupError:
        pass
gc.disable()
for look in lambda: _own.Own.threads(own), lambda: _autograd.rests(None), names:
    for n in range(200):
        gc.collect()
        gc.set_threshold(1 + n % 24)
        gc.enable()
        inside = True
        held = look()
        inside = False
        gc.disable()
        time.sleep(0.0003)
        held = None
stop = True
print("done", hits > 0)
`, "done True\n")
}
