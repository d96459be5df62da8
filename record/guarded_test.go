package record_test

import "testing"

// TestOneThreadAtATimeIsWithinTheAgent: between the agent's look at whether it works already and its mark that it does, Python ran other
// threads. Two of them then changed its tables at the same time.
func TestOneThreadAtATimeIsWithinTheAgent(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import threading, time, types
from memdiag import _agent

agent = _agent.Agent.__new__(_agent.Agent)
agent.__dict__.update(stopped=False, took=0.0, switch=lambda callback: None, working=threading.Lock(), ticker=types.SimpleNamespace(wait=lambda: False))
within, together, calls = threading.Lock(), [], []
_agent.work = lambda: time.sleep(0.001) or 0.0  # lets other threads run

def look():
    calls.append(1)
    if within.acquire(False):
        time.sleep(0.001)
        within.release()
    else:
        together.append(1)

def run():
    while len(calls) < 50:
        agent.guarded("test", look)
        time.sleep(0.0005)

threads = [threading.Thread(target=run) for _ in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(together))
`, "0\n")
}
