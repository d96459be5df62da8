//go:build unix

package record_test

import "testing"

// peaks has marks with the size of inputs; a stand-in for the allocator's counters rises in some steps.
const peaks = `
import os, sys, tempfile, types
from memdiag import _agent, _heap, _peaks

peak = {0: 100, 1: 7}
gpu = types.SimpleNamespace(name="cuda", count=lambda: 2, stats=lambda i: {"allocated_bytes": {"all": {"peak": peak[i]}}})
notes = {}
agent = types.SimpleNamespace(marked=types.SimpleNamespace(number=lambda agent, step: step), phase="", step=0, stopped=False, number=0, owner={"step": True}, dir=tempfile.mkdtemp(), suffix=lambda: "", notes=notes,
    note=lambda text: notes.setdefault(text, 1), elapsed=lambda: 100, happened=lambda event: None, boundary=lambda step: None,
    ceased=types.SimpleNamespace(end=lambda: None), measure=lambda *size: peaks.told(*size), torch=types.SimpleNamespace(cuda=types.SimpleNamespace(recording=True, gpu=gpu)))
peaks = agent.peaks = _peaks.Peaks(agent)
def mark(step, now, batch, length=None, phase=None):
    peak[0] = now
    _agent.Agent._told(agent, step, phase, None, None, None, batch, length)
mark(1, 100, 8)             # what was before it is not known
mark(2, 200, 16, 512)
mark(3, 200, 8, 512)        # no new peak
mark(4, 300, "many", None)  # its batch is not known
mark(5, 400, 8, phase="eval, é")  # a step and an evaluation
mark(6, 500, 8, phase="eval, é")
mark(7, 50, 8)              # the program resets the counters
mark(8, 450, 8)
peaks.budget.spent = 1e9
mark(9, 600, 64)
peaks.budget.spent = 0
mark(10, 700, 8)            # or in step 9
mark(11, 800, 8)
mark(None, 800, None, phase="train")
mark(12, 900, 8)
mark(None, 900, None, phase="test")
mark(None, 1000, None, phase="train")  # an evaluation that marks no size
mark(13, 1000, 8)
mark(None, 1050, None, phase="backward")  # of a step that has several phases
mark(-1, 1100, 8)           # a table has no such step
peaks.flush()
print(open(os.path.join(agent.dir, "peaks.csv"), encoding="utf-8").read(), *notes)
agent.torch.cuda = None
print(sys.platform != "linux" or [(device, peak > 1 << 20) for device, peak in peaks.peaks()] == [(b"host:0", True)])
_heap.open = lambda path, mode: os.stat("/none")  # a system without the file
print(peaks.peaks())
`

func TestPeaksAreThoseOfTheStepThatReachedThem(t *testing.T) {
	t.Parallel()
	agentProgram(t, peaks, `step,phase,device,batch,length,peak
2,,cuda:0,16,512,200
4,,cuda:0,0,0,300
6,eval__é,cuda:0,8,0,500
11,eval__é,cuda:0,8,0,800
12,train,cuda:0,8,0,900
0,backward,cuda:0,8,0,1100
 mark: batch must be one number, not 'many'
True
[]
`)
}
