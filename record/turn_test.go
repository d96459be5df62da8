package record_test

import "testing"

// turns has our thread wake in time and late: alone, while steps count, and beside threads of the program's.
const turns = `
import sys, threading
from memdiag._turn import LATE, TIMES, Turn

def woke(late=0.0, stepping=False):
    turn.woke(late, stepping)
    return sys.getswitchinterval() < before
before, turn = sys.getswitchinterval(), Turn()
print("alone", woke(), "steps count", woke(stepping=True), "they ceased", woke())
turn.end()
print("the end", sys.getswitchinterval() < before)
done = threading.Event()
threads = [threading.Thread(target=done.wait) for _ in range(2)]
for t in threads:
    t.start()
print("beside threads", woke(), "late", [woke(LATE) for _ in range(TIMES)], "in time", woke())
done.set()
for t in threads:
    t.join()
sys.setswitchinterval(2 * before)
turn.end()
print("the program's", sys.getswitchinterval() == 2 * before)
`

func TestOurThreadAsksForPythonsLockSoonWhereNobodyElseWantsIt(t *testing.T) {
	t.Parallel()
	agentProgram(t, turns, "alone True steps count False they ceased True\nthe end False\nbeside threads False late [False, False, True] in time True\nthe program's True\n")
}
