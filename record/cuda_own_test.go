//go:build unix

package record_test

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record"
)

func TestARecordThatTheProgramEndsIsBegunAgain(t *testing.T) {
	withFakeTorch(t)
	r := runOf(t, record.Options{Every: 2}, python(t), script(t, `
import torch
from torch.optim.optimizer import Optimizer
on = False
inner = torch.memory._record_memory_history
def history(enabled="all", context="all", stacks="all", max_entries=1, device=None):
    global on
    on = enabled is not None
    inner(enabled, context, stacks, max_entries, device)
torch.memory._record_memory_history = history
torch._C._cuda_isHistoryEnabled = lambda: on
torch.cuda.used = True
o = Optimizer()
for i in range(8):
    o.step()
    if i == 3: history(None)`))
	if want := "history all alloc"; r.ExitCode != 0 || strings.Count(r.stdout, want) != 2 || !r.noted("begun again") {
		t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
	}
}

func TestARecordWithoutStacksGivesNoneToBackward(t *testing.T) {
	agentProgram(t, `
import sys
from memdiag import _backward
b = _backward.Backward()
def backward(): b.called(sys._getframe(0))
backward()
user = {"filename": "train.py", "line": 7, "name": "step"}
def told(when, blocks, events):
    t = {"segments": [{"blocks": [{"address": i, "state": "active_allocated", "frames": f} for i, f in enumerate(blocks)]}],
         "device_traces": [[{"action": "alloc", "addr": a, "size": 1, "time_us": when, "frames": f} for a, f in events]]}
    b.complete(t)
    return [[len(x["frames"]) for x in rows] for rows in (t["segments"][0]["blocks"], t["device_traces"][0])]
print(told(1, [[user]], [(0, [user])]))
print(told(2, [[user], []], [(1, []), (9, [user])]))  # block 1 is a backward's
print(told(3, [[user], [], []], [(2, []), (9, [])]))  # from now on nothing has a stack
print(told(4, [[user], [], [], [], [user]], [(4, [])]))  # blocks have one, and the list has none: context="state"
print(told(5, [[user], [], [], [], [user], []], [(5, []), (9, [user])]))  # and now both
`, `[[1], [1]]
[[1, 2], [2, 1]]
[[1, 0, 0], [0, 0]]
[[1, 0, 0, 2, 1], [0]]
[[1, 0, 0, 2, 1, 2], [2, 1]]
`)
}
