package record_test

import "testing"

// watches has both kinds of watch of lines, with an agent that allows all.
const watches = `
import sys, types
from memdiag import _code, _passes

class Lines(_passes.Passes):
    def passed(self): pass

class Clocked(_code.Code):
    def __init__(self, agent):
        super().__init__(agent)
        self.slower = types.SimpleNamespace(affords=lambda: True, spent=0.0)

agent = types.SimpleNamespace(stopped=False, stepping=False, heap=types.SimpleNamespace(tracing=False), elapsed=lambda: 1e6)
`

// TestTracingEndsWhilePythonPreparesACallOfIt: a JAX program ended in one of 20 runs with "'tuple' object is not callable". Python collected
// garbage before it called the agent's trace function, and a signal's handler ended tracing in a weak reference's callback.
func TestTracingEndsWhilePythonPreparesACallOfIt(t *testing.T) {
	t.Parallel()
	agentProgram(t, watches+`
import gc
gc.collect(); gc.freeze()
for watch in Lines(agent), Clocked(agent):
    watch.most = 1 << 30
    kept = []
    def interrupted(phase, info):
        if phase == "start" and sys.gettrace() is not None:
            watch.end()
            kept.extend((i, i) for i in range(50))  # takes the memory of what is gone
    gc.callbacks.append(interrupted)
    def work(n):
        def f(a, b): return a
        return [f(i, {i: i}) for i in range(n)]
    for i in range(300):
        watch.begin()
        gc.set_threshold(1 + i % 7, 1, 1)
        work(3)
        watch.end()
        gc.set_threshold(700, 10, 10)
    gc.callbacks.remove(interrupted)
    print(type(watch).__name__, "ends")
`, "Lines ends\nClocked ends\n")
}

// TestVariablesStayWhereAnotherThreadEndsTracing: a thread's watch ended in another thread, which cleared the first one's f_locals while
// Python called the trace function. Python then copied them back, and the program's variables were gone.
func TestVariablesStayWhereAnotherThreadEndsTracing(t *testing.T) {
	t.Parallel()
	agentProgram(t, watches+`
import threading, time
from memdiag import _length
sys.setswitchinterval(1e-5)
for watch in Lines(agent), Clocked(agent):
    watch.most = 1 << 30
    errors, thread = [], None
    def work():
        try:
            for n in range(300):
                a, b, c = 1, [2], {3}
                watch.begin()
                for i in range(40):
                    d = a + len(b) + len(c)
                assert d == 3
        except BaseException as e:
            errors.append(repr(e))
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        time.sleep(1e-5)
        watch.end()
        for frame in sys._current_frames().values():
            while frame is not None:
                if frame.f_code is work.__code__:
                    _length.locals_of(frame)
                frame = frame.f_back
    thread.join()
    print(type(watch).__name__, errors)
`, "Lines []\nClocked []\n")
}

// TestWhatReturnsReleasesItsVariables: the variables of a step's function, such as its loss and its graph, lived until the next step ended.
func TestWhatReturnsReleasesItsVariables(t *testing.T) {
	t.Parallel()
	agentProgram(t, watches+`
import weakref
class Kept: pass
def returns(begins):
    kept = Kept()
    begins()
    return weakref.ref(kept)
def yields():
    kept = Kept()
    yield weakref.ref(kept)
    kept = None
    yield
for watch in Lines(agent), Clocked(agent):
    watch.most = 1 << 30
    gone = returns(watch.begin)
    print(type(watch).__name__, sys.gettrace() is not None, gone() is None)
    values = yields()
    gone = next(values)
    watch.end()
    next(values)
    print(gone() is None, values.gi_frame.f_trace)
`, "Lines True True\nTrue None\nClocked True True\nTrue None\n")
}

// TestVariablesStayWhereADebuggerWaits: the main thread waited at a debugger's prompt, and the agent's thread read its frames.
func TestVariablesStayWhereADebuggerWaits(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import sys, threading
from memdiag import _length

asks, read, main = threading.Event(), threading.Event(), threading.get_ident()

def walk():
    asks.wait()
    frame = sys._current_frames()[main]
    while frame is not None:
        if frame.f_code is work.__code__:
            print(_length.locals_of(frame))
        frame = frame.f_back
    read.set()

def prompt(frame, event, arg):
    if frame.f_code is work.__code__ and frame.f_lineno == work.__code__.co_firstlineno + 2:
        asks.set()
        read.wait()
    return prompt

def work():
    a = [1]
    b = len(a)
    return a, b

threading.Thread(target=walk).start()
sys.settrace(prompt)
print(work())
`, "{'a': [1]}\n([1], 1)\n")
}
