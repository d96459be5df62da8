package record_test

import "testing"

// idle has the agent take memory while another thread waits, and while one works in a call of C.
const idle = `
import hashlib, threading, time, types
from memdiag import _heap, _own

agent = types.SimpleNamespace(settings={}, number=0, child=False, step=0, stepping=False, spent=0.0, elapsed=lambda: 100.0, fixed=0,
    torch=types.SimpleNamespace(module=None, cuda=None, bytes=0, sweep=lambda: None), ticker=types.SimpleNamespace(interval=1.0, thread=None, acts=lambda: False))
agent.heap, agent.own = _heap.Heap(agent), _own.Own(agent)
kept, done = [], threading.Event()
def takes(until):
    before = agent.own.bytes
    with agent.own:
        kept.append(bytes(100_000))
        until()
    return agent.own.bytes - before
waits = threading.Thread(target=done.wait, daemon=True)
waits.start()
end, idle = time.monotonic() + 20, 0
while idle < 100_000 and time.monotonic() < end:
    time.sleep(0.05)  # on a busy machine the thread comes late to its wait
    idle = takes(lambda: time.sleep(0.02))  # for so long that the kernel has counted what others took
works = threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"x", b"y", 20_000_000), daemon=True)
works.start()
time.sleep(0.1)
def worked():
    begun = _own.elsewhere()
    while _own.elsewhere() - begun < 0.01:
        time.sleep(0.01)
print(idle >= 100_000, takes(worked))
import os
os._exit(0)
`

// TestWhatTheAgentTakesWhileOtherThreadsWaitIsItsOwn: a pool's parent has three threads that wait, and was said to leak.
func TestWhatTheAgentTakesWhileOtherThreadsWaitIsItsOwn(t *testing.T) {
	t.Parallel()
	agentProgram(t, idle, "True 0\n")
}
