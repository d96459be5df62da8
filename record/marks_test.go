//go:build unix

package record_test

import "testing"

// marks has arguments that are no numbers among good ones, more than the errors after which the agent stops.
const marks = `
from memdiag._agent import Agent

class Tensor:
    def __float__(self):
        raise RuntimeError("a Tensor with 4 elements cannot be converted to Scalar")
    __int__ = __float__
class WithGraph:
    def __float__(self):
        raise UserWarning("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior")
    def detach(self):
        return 2.5
a = Agent({"dir": ".", "rank": -1})
a.boundary = lambda step: steps.append(step)
steps = []
for i in range(3):
    a.told("eval", None, None, None, None)
    a.told(None, None, Tensor(), None, None)
    a.told(None, None, None, Tensor(), None)
    a.told(i, 1, WithGraph(), i, None)
    a.told(float("nan"), None, None, None, None)
a.told(1 << 53, None, -(1 << 60), None, None)
a.told(None, None, None, None, None, 10**400, 1 << 60)
print(a.peaks.batch, a.peaks.length)
for note in a.notes.items():
    print(note)
print(steps, a.errors, a.events, a.epoch_number, len(a.losses.pending))
`

// Three marks with words for numbers ended the recording.
func TestAMarkThatIsNoNumberIsLeftOut(t *testing.T) {
	t.Parallel()
	agentProgram(t, marks, `0 0
("mark: step must be one number, not 'eval'", 1)
('mark: epoch must be one number, not a Tensor', 1)
('mark: loss must be one number, not a Tensor', 1)
('mark: batch must be one number, not one of 1329 bits', 1)
('mark: length must be one number, not one of 61 bits', 1)
[0, 1, 2] 0 {'1': 1, 'epoch': 1} 2 3
`)
}

// markedSteps prints what steps the agent makes of those that a program marks after so many of its optimizer's.
const markedSteps = `
import types
from memdiag._marks import Steps

def numbers(step, marked):
    agent = types.SimpleNamespace(step=step, notes=[], drop_after=lambda step: print("dropped"))
    agent.note, steps, out = agent.notes.append, Steps(), []
    for n in marked:
        agent.step = steps.number(agent, n)
        out.append(agent.step)
    return out, agent.notes
def counted(step, *marked):
    print(*numbers(step, marked))
`

// The batches of each epoch, marked as steps, gave no snapshots from the second epoch on, and steps that were marked downwards a run that
// grew backwards.
func TestMarkedStepsThatBeginAnewCountOn(t *testing.T) {
	t.Parallel()
	agentProgram(t, markedSteps+`
counted(0, 1, 2, 2, 40)
counted(0, 0, 50, 100, 0, 50, 100, 0)
counted(0, -1, 3, 2, 1)
counted(1, 0, 1)  # an optimizer stepped before the first mark
counted(1, 1, 2)
counted(30, 0, 1)
counted(100, 99, 199)
counted(30, 1000)
`, `[1, 2, 2, 40] []
[0, 50, 100, 101, 151, 201, 202] ['mark: step 0 after step 100: steps do not go back, and are counted on from there']
[1, 5, 6, 7] ['mark: step -1 after step 0: steps do not go back, and are counted on from there']
dropped
[0, 1] []
[1, 2] []
[31, 32] ['mark: step 0 after step 30: steps do not go back, and are counted on from there']
[101, 201] ['mark: step 99 after step 100: steps do not go back, and are counted on from there']
[1000] []
`)
}

// Each evaluation whose batches were marked added all steps before it once more: 10,000 steps with ten of them were 55,000.
func TestACountThatOthersInterruptGoesOn(t *testing.T) {
	t.Parallel()
	agentProgram(t, markedSteps+`
def ends(*marked):
    out, notes = numbers(0, marked)
    print(out[-1], out == sorted(set(out)), len(notes))

train = [range(n, n + 1000) for n in range(0, 10_000, 1000)]
ends(*(n for part in train for n in [*part, *range(100)]))
ends(*(n for part in train for n in [*part, *range(100), *range(50)]))  # two evaluations
ends(*(n for part in train for n in [*part, *range(0, 500, 100)]))  # one that marks each hundredth batch
ends(*(n for i in range(1000, 2000) for n in [*range(8), i]))  # batches of each step
ends(*(n for i in range(1000, 1100) for n in [*range(4), i] * 2))  # all of them twice
ends(*[*range(0, 151, 50)] * 9)  # epochs of 151 batches
`, `10999 True 1
11499 True 1
14009 True 1
9991 True 1
1995 True 1
1358 True 1
`)
}

// The first mark took back all snapshots of the hundred steps before it, and one that the program had asked for.
func TestTheFirstMarkTakesBackOnlyTheStepThatItCounts(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import os, tempfile, types
from memdiag._agent import Agent

for steps, mark, asks in (1, 0, False), (1, 0, True), (100, 99, False):
    with tempfile.TemporaryDirectory() as folder:
        a = Agent({"dir": folder, "rank": -1})
        a.jax, a.boundary, a.step = types.SimpleNamespace(locked=lambda: True), lambda step: print(step, end=" "), steps
        a.written = [["t1", "snapshot_t1.json"], [1, "snapshot_1.json"]]
        for _, name in a.written:
            open(os.path.join(folder, name), "w").close()
        if asks:
            print(os.path.basename(a.snapshot_now()), end=" ")
        a.told(mark, None, None, None, None)
        print(*sorted(os.listdir(folder)), len(a.written))
`, `0 snapshot_t1.json 1
snapshot_1.json 2 snapshot_1.json snapshot_t1.json 2
101 snapshot_1.json snapshot_t1.json 2
`)
}

// A watch without a name took the function's place, which then never ran.
func TestAWatchWithoutANameIsRefused(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import memdiag
try:
    @memdiag.watch
    def collate(samples): ...
except TypeError as e:
    print(e)
print(memdiag.watch("collate")(len)("ab"))
`, "write @memdiag.watch(\"name\")\n2\n")
}

// A second fit, or a new Trainer, counted from one again, so that steps went back.
func TestStepsOfALoopThatBeginsAnewComeAfterThoseBeforeIt(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import memdiag
from memdiag.callbacks import _Steps
marked = []
memdiag.mark = lambda step: marked.append(step)
steps = _Steps()
for counted, loop in (1000, (1001, 1002)), (0, (1, 2)), (1004, (1005,)), (2, (3,)):  # from a checkpoint, anew, and from older ones
    steps.begin(counted)
    for count in loop:
        steps.mark(count)
print(marked)
`, "[1001, 1002, 1003, 1004, 1005, 1006]\n")
}
