//go:build unix

package record_test

import "testing"

// priced is a training of 400 steps of 22 ms, of which watching costs 2 ms: a convolutional net's figures.
const priced = `
from memdiag import _units
from memdiag._sampler import Sampler

now, watched = 0.0, Sampler(_units.ALLOWANCE, _units.SHARE)
for step in range(400):
    now += 0.022
    if watched.next(now):
        watched.costs(0.002)
assert watched.spent <= _units.ALLOWANCE + 0.017 * now, watched.spent
`

func TestWatchingCostsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	agentProgram(t, priced, "")
}

// seldom is a reinforcement learner of 250 steps of 40 ms, of which watching costs as much again.
const seldom = `
from memdiag import _units
from memdiag._sampler import Sampler

now, watched, times = 0.0, Sampler(_units.ALLOWANCE, _units.SHARE), 0
for step in range(250):
    now += 0.04
    if watched.next(now):
        watched.costs(0.04)
        times += 1
assert 8 <= times <= 20, times
`

func TestWatchingFewLongStepsThinsOutSoon(t *testing.T) {
	t.Parallel()
	agentProgram(t, seldom, "")
}

// unstepped has looks at each twentieth of a second, between which watching costs as much as the program's own work, and a
// stretch of a tenth of the time that stands for all of it.
const unstepped = `
from types import SimpleNamespace
from memdiag import _torch, _units
from memdiag._sampler import ALL_SHARE, Stretches

now, watched = 0.0, Stretches(_units.ALLOWANCE, _units.SHARE)
for look in range(400):
    now += 0.05
    if watched.next(now):
        watched.costs(0.05)
assert ALL_SHARE * now - 0.05 <= watched.spent <= ALL_SHARE * now + 0.05, watched.spent

t = _torch.Torch(SimpleNamespace())
t.table, t.late, t.stretch, t.begun = {1: [0, 64, 0, 1, 5]}, [1, 2], 1.0, 1.9
t.stand(2.0)
assert t.table == {1: [0, 64, 0, 10, 5]} and t.stretch == 2.0, t.table
`

func TestWatchingWithoutStepsCostsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	agentProgram(t, unstepped, "")
}

// between has operators that come quickly, slowly, and in between.
const between = `
from memdiag._price import FAR, Price

p = Price.__new__(Price)
p.near, p.far = 10, 30
assert p.of(0, 1.0) == 0
assert p.of(2, 0.0) == 20 == p.of(2, -1.0)
assert p.of(2, FAR) == 40
assert p.of(2, 2 * FAR) == 60 == p.of(2, 9.0)
`

func TestOperatorsThatAreFarBetweenCostMore(t *testing.T) {
	t.Parallel()
	agentProgram(t, between, "")
}

// ended has a storage that is gone when the unit that made it ends, and one that the next unit lets go of.
const ended = `
from types import SimpleNamespace
from memdiag._torch import Torch

gone, freed = {1}, []
t = Torch(SimpleNamespace(elapsed=lambda: 0.0, step=1, stepping=True))
t.mode, t.price = SimpleNamespace(ops=2), SimpleNamespace(of=lambda operators, took: 0.0)
t.weak = SimpleNamespace(_expired=gone.__contains__, _free_weak_ref=freed.append)
t.table, t.young, t.thread = dict.fromkeys((1, 2, 3)), [1, 2, 3], 1
t.settle()
assert freed == [1], freed
t.thread = None  # the next unit is not watched
assert t.unwatched() == 0, "nobody looks at its end"
gone.add(2)
t.settle()
assert freed == [1, 2] and list(t.table) == [3], freed
t.train.weight = 8
assert t.unwatched() > 0
`

func TestWhatIsGoneIsLetGoOfAUnitLater(t *testing.T) {
	t.Parallel()
	agentProgram(t, ended, "")
}

// pausedStretch has a stretch of time that is watched, and one in which the mode could not be left, as in inference_mode.
const pausedStretch = `
from types import SimpleNamespace
from memdiag._torch import Torch

t = Torch(SimpleNamespace(elapsed=lambda: 2.0, step=0, stepping=False, took=0.0))
t.price, t.thread, t.unit, t.since = SimpleNamespace(of=lambda operators, took: float(operators)), 1, t.clock, 1
t.weak, t.table, t.young, t.late = SimpleNamespace(_expired=None, _free_weak_ref=None), {}, [], []
t.mode = SimpleNamespace(ops=8, paused=True)
t.settle()
assert (round(t.clock.spent), t.ahead, t.stretch) == (8, 0.0, 0.0), "the next snapshot pays for what it did not ask for"
t.mode = SimpleNamespace(ops=8, paused=False)
t.settle()
assert (round(t.ahead), t.stretch) == (8, 2.0), (t.ahead, t.stretch)
`

func TestASnapshotPaysForNoOperatorsThatNobodyWatched(t *testing.T) {
	t.Parallel()
	agentProgram(t, pausedStretch, "")
}

// TestAWindowCostsWhatOtherThreadsTakeLonger: the main thread waits for Python's lock meanwhile, which is no time of its own.
func TestAWindowCostsWhatOtherThreadsTakeLonger(t *testing.T) {
	agentProgram(t, `
import threading, time, types
from memdiag import _windows
w = _windows.Windows.__new__(_windows.Windows)
w.agent = types.SimpleNamespace(programs=lambda: 1.0)
w.plain, w.lasts, w.all = 0.01, 0.02, 0.03
w.began = time.monotonic() - 1, 0.95, time.process_time() - 0.5
print(round(w.cost(2), 1))
for _ in range(2):
    threading.Thread(target=time.sleep, args=(2,), daemon=True).start()
print(round(w.cost(2), 1))
w.began = time.monotonic() - 0.3, 0.95, time.process_time() - 10
print(round(w.cost(2), 1))
`, "0.0\n0.4\n0.3\n")
}
