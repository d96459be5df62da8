//go:build unix

package record_test

import "testing"

// peaks has marks with the size of inputs; a stand-in for the allocator's counters rises in some steps.
const peaks = `
import os, sys, tempfile, types
from memdiag import _agent, _peaks

peak = {0: 100, 1: 7}
gpu = types.SimpleNamespace(name="cuda", count=lambda: 2, stats=lambda i: {"allocated_bytes": {"all": {"peak": peak[i]}}})
notes = {}
agent = types.SimpleNamespace(phase="", step=0, stopped=False, number=0, owner={"step": True}, dir=tempfile.mkdtemp(), suffix=lambda: "", notes=notes,
    note=lambda text: notes.setdefault(text, 1), elapsed=lambda: 100, torch=types.SimpleNamespace(cuda=types.SimpleNamespace(recording=True, gpu=gpu)))
peaks = _peaks.Peaks(agent)
def mark(step, now, batch, length=None, phase=""):
    peak[0], agent.phase = now, phase
    peaks.told(step, batch, length)
mark(1, 100, 8)             # what was before it is not known
mark(2, 200, 16, 512)
mark(3, 200, 8, 512)        # no new peak
mark(4, 300, "many", None)  # its batch is not known
mark(5, 400, 8, phase="eval, é")  # a step and an evaluation
mark(6, 500, 8, phase="eval, é")
mark(7, 50, 8, phase="eval, é")   # the program resets the counters
mark(8, 450, 8, phase="eval, é")
peaks.budget.spent = 1e9
mark(9, 600, 64)
peaks.budget.spent = 0
mark(10, 700, 8)            # or in step 9
mark(11, 800, 8)
peaks.flush()
print(open(os.path.join(agent.dir, "peaks.csv"), encoding="utf-8").read(), *notes)
agent.torch.cuda = None
print(peaks.peaks()[0][0], sys.platform != "linux" or peaks.peaks()[0][1] > 1 << 20)
`

func TestPeaksAreThoseOfTheStepThatReachedThem(t *testing.T) {
	t.Parallel()
	agentProgram(t, peaks, `step,phase,device,batch,length,peak
2,,cuda:0,16,512,200
4,,cuda:0,0,0,300
6,eval__é,cuda:0,8,0,500
11,,cuda:0,8,0,800
 mark: batch must be one number, not 'many'
b'host:0' True
`)
}
