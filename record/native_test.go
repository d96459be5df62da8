package record_test

import "testing"

// nativeHeap has an agent without sources, and a heap of malloc's that the program's lines change.
const nativeHeap = `
import _thread, linecache, sys, types
from memdiag import _native

extension = {"heap": 0}
exec(compile("def malloc(size):\n    global heap\n    heap += size", "/x/site-packages/extension.py", "exec"), extension)
malloc = extension["malloc"]
agent = types.SimpleNamespace(elapsed=lambda: 9.0, stopped=False, stepping=False, own=types.SimpleNamespace(bytes=0, blocks=0), ticker=types.SimpleNamespace(worked=lambda: 0.0))
others = [0.0]
_native.elsewhere = lambda: others[0]

def figures():
    return extension["heap"], 0, 0

def step(leak):
    malloc(9 << 20)
    malloc(leak)
    malloc(-9 << 20)

def half():
    malloc(80_000)
    malloc(-40_000)

def two():
    malloc(50_000)
    malloc(70_000)

def halves():
    malloc(60_000)
    malloc(60_000)
    malloc(-60_000)

def three():
    malloc(9 << 20)
    malloc(30_000)
    malloc(30_000)
    malloc(30_000)
    malloc(-9 << 20)

def still():
    malloc(1000)
    malloc(-1000)

def waits():
    others[0] += malloc(30_000) or 0.001

def search(body, *args, rounds=1200, pace=1e12):
    watch = _native.Native(agent, figures, lambda: pace)
    watch.open()
    for _ in range(rounds):
        body(*args)
    traced = watch.on
    watch.end()
    line = watch.stack and watch.stack[0]
    print(line and line[0] + ": " + linecache.getline(*line[1:]).strip(), watch.windows(), traced, sys.gettrace())

search(step, 30_000)
search(half)
search(two)
search(halves)
search(three)
search(still)
search(step, 30_000, rounds=3)
search(step, 30_000, pace=9)
search(waits)  # threads of C alone
_thread._count = lambda: 2
search(waits)

watch = _native.Native(agent, figures, lambda: 1e12)
watch.open()
step(9)
watch.rest()
malloc(1 << 30)
watch.resume()
for _ in range(1200):
    step(30_000)
watch.end()
print(watch.stack[0][0], watch.votes[None])
agent.elapsed = lambda: 18.0
watch.open()
for _ in range(1200):
    half()
watch.end()
print(watch.stack[0][0])
for named in 1, 0:
    watch.votes.update({watch.stack[0]: named - watch.votes[watch.stack[0]], None: 10})
    watch.settle(None)
    print(watch.stack and watch.stack[0][0])
agent.elapsed = lambda: 18.0
watch.open()
print(watch.on, agent.own.blocks)
agent.elapsed = lambda: 9.0

watch = _native.Native(agent, lambda: None, lambda: 1e12)
watch.open()
print(watch.on)

# A library's code takes longer meanwhile.
watch = _native.Native(agent, figures, lambda: 1e12)
watch.open()
print(watch.overdrawn()); watch.left -= 60; print(watch.overdrawn()); watch.stop_overdrawn(False)
print(watch.on, watch.part, watch.budget.affords())

agent.elapsed = lambda: -6.0
search(step, 30_000)
`

func TestTheLineAtWhichNativeMemoryGrows(t *testing.T) {
	t.Parallel()
	agentProgram(t, nativeHeap, `step: malloc(leak) 3 False None
half: malloc(80_000) 3 False None
two: malloc(70_000) 3 False None
None 10 False None
None 10 False None
None 0 True None
None 0 True None
None 10 False None
waits: others[0] += malloc(30_000) or 0.001 3 False None
None 10 False None
step 0
half
half
None
False 0
False
False
True
False 0.1 False
None 0 False None
`)
}
