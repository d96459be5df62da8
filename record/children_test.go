//go:build unix

package record_test

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// TestGrowthIsNoStep has what a process holds at equal times.
func TestGrowthIsNoStep(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
from memdiag._growth import rises
mib = 1 << 20
for seen in [10, 11, 12, 13, 14, 15], [10, 10, 50, 50, 50, 50], [10, 50, 50, 50, 50, 10], [10, 10, 10, 10, 10, 10], [10, 10, 11, 11, 12, 12], [30, 12, 31, 13, 32, 14]:
    print(rises([n * mib for n in seen]), rises([n * 4096 for n in seen]))
`, "True False\nFalse False\nFalse False\nFalse False\nTrue False\nFalse False\n")
}

// TestALoaderWorkersBatchesAreCounted: and what a batch's stack has of it is no file of the agent's.
func TestALoaderWorkersBatchesAreCounted(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import sys, types
from memdiag import _batches
print(_batches.count())
class Fetcher:
    def fetch(self, index):
        if index < 0:
            raise StopIteration
        return [f.f_code.co_filename for f in (sys._getframe(), sys._getframe(1))]
utils = types.SimpleNamespace(
    worker=types.SimpleNamespace(_worker_info=object()),
    fetch=types.SimpleNamespace(_MapDatasetFetcher=Fetcher, _IterableDatasetFetcher=type("Other", (Fetcher,), {})))
sys.modules["torch.utils.data._utils"] = utils
batches = _batches.count()
for n in range(3):
    files = Fetcher().fetch(n)
try:
    Fetcher().fetch(-1)
except StopIteration:
    pass
print(batches, files[1])
utils.worker._worker_info = None
print(_batches.count())
`, "None\n[3] <batch>\nNone\n")
}

// TestAWorkerThatGrowsByItsImportsHasBatches: what it had written before is no part of them.
func TestAWorkerThatGrowsByItsImportsHasBatches(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import sys, types
from memdiag._agent import Agent
a = Agent({"dir": ".", "rank": -1})
a.child, a.jax, a.begin_anew = True, types.SimpleNamespace(tick=lambda: None), lambda: print("anew")
a.wants, a.remove, a.written = lambda forced: False, print, [["t1", "snapshot_t1_child1.json"]]
a.look(False)
print(a.batches)
fetcher = type("Fetcher", (), {"fetch": lambda self, index: index})
sys.modules["torch.utils.data._utils"] = types.SimpleNamespace(
    worker=types.SimpleNamespace(_worker_info=object()), fetch=types.SimpleNamespace(_MapDatasetFetcher=fetcher, _IterableDatasetFetcher=fetcher))
a.look(False)
print(a.batches, a.written)
`, "None\nanew\nsnapshot_t1_child1.json\n[0] []\n")
}

// TestATitleIsARole: as setproctitle writes it, and not what a fork has of its parent.
func TestATitleIsARole(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import types, sys
from memdiag import _role
print(repr(_role.title()))
sys.modules["multiprocessing.process"] = types.SimpleNamespace(_current_process=types.SimpleNamespace(name="SpawnProcess-2"))
_role.written = lambda: "ray::Trainer.step()"
print(_role.title(), _role.role())
_role.forked()
print(_role.role())
_role.written = lambda: "rollout::worker 1"
print(_role.role())
`, "''\nray::Trainer ray::Trainer\nprocess 2\nrollout::worker 1\n")
}

// TestAChildIsRecordedUnderItsRoleOnceItGrows has two forks, of which one keeps what it makes.
func TestAChildIsRecordedUnderItsRoleOnceItGrows(t *testing.T) {
	heavytest.Skip(t, "two processes run for 12 s")
	t.Parallel()
	path := script(t, `
import multiprocessing, time
def work(keeps):
    kept = []
    for i in range(1200):
        made = [float(i + j) for j in range(2000)]
        if keeps:
            kept.append(made)
        time.sleep(0.01)
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=(keeps,), name="worker %d" % keeps) for keeps in (False, True)]
    for w in workers: w.start()
    for w in workers: w.join()
`)
	r := runOf(t, record.Options{}, python(t), path)
	run, err := files.OpenRun(r.dir)
	if err != nil || r.ExitCode != 0 || r.stderr != "" {
		t.Fatalf("%+v, %q, %v", r.Outcome, r.stderr, err)
	}
	if len(run.Children) != 1 || run.Children[0].Role != "worker 1" || len(run.Children[0].Snapshots) < 6 {
		t.Fatalf("%d children: %+v", len(run.Children), run.Children)
	}
	roles := make(map[string]bool)
	for _, p := range run.Tree.Processes {
		roles[p.Role] = true
	}
	if !roles["worker 0"] || !roles["worker 1"] {
		t.Errorf("roles %v", roles)
	}
	last := run.Children[0].Snapshots[len(run.Children[0].Snapshots)-1]
	if len(last.Holders) == 0 || !strings.Contains(last.Holders[0].Path, "kept") {
		t.Errorf("held by %+v", last.Holders)
	}
}

// TestAChildThatMarksStepsIsRecordedByThem: it is the run where its parent marks none, and recorded beside that else. A parent that
// marks steps after the child has taken over was not recorded, and a leak of its own on a GPU passed.
func TestAChildThatMarksStepsIsRecordedByThem(t *testing.T) {
	t.Parallel()
	path := script(t, `
import memdiag, multiprocessing, sys, time
def work():
    for i in range(100):
        memdiag.mark(step=i + 1)
        time.sleep(0.01)
if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=work, name="trainer")
    child.start()
    if sys.argv[1] == "both":
        work()
    child.join()
    if sys.argv[1] == "after":
        while not memdiag._running.stopped:  # it sees at a look that the child has taken over
            time.sleep(0.01)
        work()
`)
	for how, children := range map[string]int{"alone": 0, "both": 1, "after": 1} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := runOf(t, record.Options{}, python(t), path, how)
			run, err := files.OpenRun(r.dir)
			if err != nil || len(run.Children) != children || len(run.Info.Unseen) > 0 {
				t.Fatalf("%v; %d children, unseen %v", err, len(run.Children), run.Info.Unseen)
			}
			for _, of := range append(run.Children, run) {
				first, last := of.Snapshots[0].Mark.Step, of.Snapshots[len(of.Snapshots)-1].Mark.Step
				if first < 0 || first > 10 || last < 70 {
					t.Errorf("%q is recorded from step %d to %d", of.Role, first, last)
				}
			}
		})
	}
}

// TestAForkThatGrowsFirstIsNotTheRun: what started it is, though it is slower to begin.
func TestAForkThatGrowsFirstIsNotTheRun(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import os, tempfile
from memdiag._role import below
with tempfile.TemporaryDirectory() as folder:
    reports = os.path.join(folder, ".agent_")
    print(below(reports))
    open(reports + "%d.json" % os.getpid(), "w").close()
    print(below(reports), flush=True)
    if os.fork() == 0:
        print(below(reports), flush=True)
        if os.fork() == 0:
            print(below(reports), flush=True)
            os._exit(0)
        os.wait()
        os._exit(0)
    os.wait()
`, "False\nFalse\nTrue\nTrue\n")
}

// TestAProcessOfARankFollowsIt: it took the place of the rank, which steps, lost it, and was not recorded.
func TestAProcessOfARankFollowsIt(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import os, subprocess, sys, types
from memdiag._agent import Agent
a = Agent({"dir": os.path.dirname(__file__), "rank": -1, "report": ".agent_"})
a.torch = types.SimpleNamespace(module=None)
def follows():
    a.rank = a.find_rank()
    print(a.rank, a.follows(), flush=True)
def child(rank):
    subprocess.run([sys.executable, __file__, "child"], env=dict(os.environ, RANK=rank))
how = sys.argv[1:]
if how == ["child"]:
    follows()
    sys.exit()
if not how:  # only what a process began with shows from outside
    os.execve(sys.executable, [sys.executable, __file__, "parent"], dict(os.environ, RANK="7"))
follows()
open(os.path.join(a.dir, ".agent_%d.json" % os.getpid()), "w").close()
child("7")
child("8")
quiet = type("Quiet", (), {"__init__": lambda self, agent=None: None, "forked": lambda self: None, "fresh": lambda self: None, "stop": lambda self: None})
a.ticker, a.shared, a.losses, a.sleep = quiet(), quiet(), quiet(), lambda: None
os.environ["RANK"] = "9"  # which it has by itself
for rank in "9", "10":
    if os.fork() == 0:
        a.code = quiet()
        a.forked()
        os.environ["RANK"] = rank
        follows()
        os._exit(0)
    os.wait()
`, "7 False\n7 True\n8 False\n9 True\n10 False\n")
}

// TestAChildThatTurnsAwayIsSeen: by its lines, or from outside where the agent cannot be in it.
func TestAChildThatTurnsAwayIsSeen(t *testing.T) {
	heavytest.Skip(t, "five processes run for 12 s")
	t.Parallel()
	path := script(t, `
import multiprocessing, os, signal, subprocess, sys, time
def keep(seconds):
    kept, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        kept.append(os.urandom(256) * 800)
        time.sleep(0.005)
def closes():
    os.closerange(0, 1000)
    keep(12)
def moves():
    os.chdir("/")
    os.environ.clear()
    keep(12)
if __name__ == "__main__":
    how = sys.argv[1]
    if how == "child":
        keep(12)
    elif how == "ranked":
        import memdiag
        os.environ["RANK"] = "0"
        memdiag.mark(step=1)
        if os.fork() == 0:
            keep(12)
            os._exit(0)
        for n in range(1200):
            memdiag.mark(step=n + 2)
            time.sleep(0.01)
        os.wait()
    elif how == "environment":
        subprocess.run([sys.executable, __file__, "child"], env={}, cwd="/")
    else:
        child = multiprocessing.get_context("fork").Process(target=keep if how == "killed" else globals()[how], args=(60,) if how == "killed" else ())
        child.start()
        if how == "killed":
            time.sleep(12)
            os.kill(child.pid, signal.SIGKILL)
        child.join()
`)
	for how, recorded := range map[string]bool{"closes": true, "moves": true, "killed": true, "ranked": true, "environment": false} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			run, err := files.OpenRun(runOf(t, record.Options{}, python(t), path, how).dir)
			if err != nil || (len(run.Children) > 0) != recorded {
				t.Fatalf("%v; recorded %v", err, run.Children)
			}
			grew := snapshot.Bytes(0)
			for _, p := range run.Tree.Processes[1:] {
				for _, point := range p.Points { // the last may be of a process that is exiting, and has freed it all
					grew = max(grew, point.Anonymous-p.Points[0].Anonymous)
				}
			}
			if grew < 20*snapshot.MiB {
				t.Errorf("from outside it grew by %s", grew)
			}
		})
	}
}

// TestARankListsTheFolderOfAThousandRanksForNothing: neither to see who has taken over, nor to be recorded beside another process.
func TestARankListsTheFolderOfAThousandRanksForNothing(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import os, tempfile
from memdiag import _claims, _ranks
dir = tempfile.mkdtemp()
agent = _ranks.Ranks()
agent.dir, agent.rank = dir, 3
def refused(*_):
    raise AssertionError("the folder is listed")
_claims.os.listdir = _claims.os.scandir = refused
print(agent.replaced(), _claims.claim(os.path.join(dir, ".claim_step_rank3")), agent.replaced())
print(os.path.basename(_claims.beside(dir, 0)))
`, "False True True\n.claim_tick_child1\n")
}

// TestADaemonRecordsItsRank: it had a place beside its parent, which records nothing, and the run had no snapshots of its own.
func TestADaemonRecordsItsRank(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
from memdiag import _agent
class Child:
    def owns(self, kind):
        return self.first
    def beside(self):
        print("beside")
        return True
for Child.first in True, False:
    print(_agent.Agent.admitted(Child(), lambda: True))
`, "True\nbeside\nTrue\n")
}

// TestChildrenAreRecordedWithinOneBudget: so many at once and in all, and the agent takes no more in all of them than a share.
func TestChildrenAreRecordedWithinOneBudget(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import os, tempfile
from memdiag import _claims
dir = tempfile.mkdtemp()
def claimed(seconds):
    n = 0
    while True:
        path = _claims.beside(dir, seconds)
        if path is None:
            return n
        assert _claims.claim(path) and not _claims.claim(path)
        n += 1
def clear():
    for name in os.listdir(dir):
        os.unlink(os.path.join(dir, name))
print(claimed(0), claimed(20))
clear()
print(claimed(1e6))
began, _claims.began = _claims.began, lambda pid: 1  # all have ended, and others have their numbers
print(claimed(1e6), len(os.listdir(dir)))
_claims.began = began
clear()
claimed(0)
for name in os.listdir(dir):
    _claims.charge(os.path.join(dir, name), 1.5)
print(claimed(20), claimed(600))
`, "16 3\n32\n32 64\n0 16\n")
}
