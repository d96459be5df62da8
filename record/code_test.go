//go:build unix

package record_test

import "testing"

// codes has functions of which a comment, a constant, or nothing changes.
const codes = `
import gc, sys, weakref
from types import SimpleNamespace
from memdiag import _code, _length, _ticks, _tracing

def digests(text):
    out = {}
    _code.collect(compile(text, "train.py", "exec"), out)
    return {name: digest for name, (first, digest) in out.items()}

before = digests('''
class Trainer:
    def step(self, x):
        self.kept.append(x)
        return {1, "b", (2.0, None)} and x in {"b", "a", "c"}
def other():
    return 1
''')
assert {"Trainer.step", "other"} <= before.keys() or sys.version_info < (3, 11), before
moved = digests('''
# A comment.

class Trainer:
    def step(self, x):
        # Another.
        self.kept.append(x)

        return {1, "b", (2.0, None)} and x in {"b", "a", "c"}
def other():
    return 2
''')
assert before.pop("other") != moved.pop("other")
assert before == moved, (before, moved)

# What a file's text was is told as memdiag computes it.
import os, sys, tempfile, types, zlib
path = os.path.join(tempfile.mkdtemp(), "kept.py")
text = b"def keep():\n    pass\n"
with open(path, "wb") as f:
    f.write(text)
os.utime(path, (1, 1))
sys.modules["kept"] = module = types.ModuleType("kept")
module.__file__ = path
told = _code.Code(SimpleNamespace())
told.read()
del sys.modules["kept"]
assert told.contents[path] == "21:4b41b8d8", told.contents

agent = SimpleNamespace(stopped=False, elapsed=lambda: 0, heap=SimpleNamespace(tracing=False))
code = _code.Code(agent)

# At exit the module __main__ has no file any more.
os.utime(__file__, (1, 1))
code.begin()
code.end()
script = __file__
del __file__
code.read()
assert script in code.contents, code.contents
__file__ = script
code = _code.Code(agent)

def called():
    return 1  # 1

def work(mode):
    called()  # 1
    if mode:
        called()  # 3
    for _ in range(10_000):
        called()
    code.end()

for mode in False, True:
    code.begin()
    work(mode)
assert sys.gettrace() is None
seen = {name: lines for (file, name), lines in code.seen.items() if file == called.__code__.co_filename}
assert seen["called"][1] == 2 and seen["work"][1] == 2 and seen["work"][3] == 1, seen
assert code.looks == 2 and code.spent < 2 * _code.A_STEP + 10, (code.looks, code.spent)

# Nothing that it makes waits for a collection.
gc.collect()
gc.disable()
code.begin()
work(True)
assert gc.collect() == 0
gc.enable()

# A frame that an instruction without a line has interrupted.
code.begin()
code.tracer(SimpleNamespace(f_code=work.__code__, f_lineno=None))
code.end()
assert None not in {line for lines in code.seen.values() for line in lines}, code.seen

# What a function lets go of is gone, also where its locals were asked for before its lines are watched.
class Kept:
    pass

def lets_go():
    kept, mine = Kept(), 1
    gone = weakref.ref(kept)
    _length.locals_of(sys._getframe())
    code.begin()
    kept.x = mine
    code.end()
    del kept
    assert gone() is None and mine == 1, "it is kept"

lets_go()

# A long loop is not watched for all its rounds.
def loops():
    for _ in range(10_000):
        pass
    return sys._getframe().f_trace

code = _code.Code(agent)
code.begin()
assert code.on and loops() is None and code.events < 2 * _code.A_CALL, code.events
code.end()

# The main thread is not interrupted within a tracer.
def interrupted():
    yield sys._getframe()
assert not _tracing.runs(next(interrupted()))
exec(compile("def line():\n yield sys._getframe()", _code.__file__, "exec"))
assert _tracing.runs(next(line()))

# The program's own tracer is left alone, and there is an end to what all steps may take.
def tracer(frame, event, arg):
    return tracer

sys.settrace(tracer)
code.begin()
assert sys.gettrace() is tracer and not code.on
sys.settrace(None)
for _ in range(100):
    code.begin()
    work(True)
assert code.spent < _code.ALLOWANCE + _code.A_STEP, code.spent

# A library's code takes longer meanwhile: there is an end to that, too.
agent.stepping = False
code = _code.Code(agent)
code.begin()
code.began -= 60
assert code.overdrawn()
code.leave_early(False)
assert not code.on and code.slower.spent > 30, code.slower.spent
code.begin()
assert not code.on
`

func TestTheProgramsCodeAndTheLinesThatRan(t *testing.T) {
	t.Parallel()
	agentProgram(t, codes, "")
}

// tracedLine has a look at the program's variables due while Python calls the agent, or a function of the program's, for a line.
const tracedLine = `
import _thread, sys
from types import SimpleNamespace
from memdiag import _code, _length, _ticks

looks = []
def look(importing):
    looks.append(sorted(_length.locals_of(traced)))
agent = SimpleNamespace(stopped=False, interrupting=False, switch=lambda callback: None, seconds=1, child=False, elapsed=lambda: 0, heap=SimpleNamespace(tracing=False), guarded=lambda what, f, *args: f(*args))
ticker = _ticks.Ticker(agent)
class Lines(set):
    def add(self, line):
        set.add(self, line)
        due(sys._getframe())
def due(frame):
    ticker.asked = look
    ticker.handle(0, frame)

def sums(values, y):
    total = sum(v * y for v in values)
    return total + y

code = _code.Code(agent)
def ours(frame, event, arg):
    global traced
    if frame.f_code is not sums.__code__:
        return None
    traced = frame
    return _code.Call(code, Lines())
code.on = True
sys.settrace(ours)
result = sums([1, 2], 3)
sys.settrace(None)
print(result, looks)

def own(frame, event, arg):
    global traced
    if frame.f_code is sums.__code__:
        traced = frame
        due(sys._getframe())
        return own
sys.settrace(own)
result = sums([1, 2], 3)
sys.settrace(None)
print(result, len(looks) > 0)
`

func TestALookThatIsDueWhileALineIsTracedTakesNoVariable(t *testing.T) {
	t.Parallel()
	agentProgram(t, tracedLine, "12 []\n12 True\n")
}
