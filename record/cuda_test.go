//go:build unix

package record_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// fakeTorch is what the agent uses of a PyTorch with CUDA, by its documentation: the
// path to a GPU is followed where there is none. What its parts were asked goes to
// standard output.
const fakeTorch = `
import sys
__version__ = "2.9.0+cu130"
class Tensor: pass
class version:
    cuda, hip = "13.0", None
class UntypedStorage:
    _expired = _free_weak_ref = None  # there is none on the CPU
class nn:
    class Module:
        def eval(self): return self
    class Parameter(Tensor): pass
from torch import _C
def since21(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None):
    print("history", enabled, context, stacks, max_entries)
    if broken: raise RuntimeError("no driver")
def of20(enabled, record_context=True, trace_alloc_max_entries=1, trace_alloc_record_context=False, device=None, record_context_cpp=False):
    print("history", enabled, record_context, trace_alloc_max_entries, trace_alloc_record_context)
class memory:
    live = device = 0
    _record_memory_history = staticmethod(since21)
    @staticmethod
    def _snapshot(device=None):
        frames = [{"name": "forward", "filename": "model.py", "line": 7}]
        blocks = [{"address": 4096 + 512 * i, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": frames} for i in range(memory.live)]
        total = 512 * memory.live
        segment = {"device": memory.device, "address": 4096, "total_size": total, "allocated_size": total, "active_size": total,
            "requested_size": 500 * memory.live, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
            "is_expandable": False, "frames": [], "blocks": blocks}
        return {"segments": [segment] if blocks else [], "device_traces": [[], []], "allocator_settings": {}}
class cuda:
    used = False
    memory = memory
    @staticmethod
    def is_available():
        print("the driver was started")
    is_initialized = staticmethod(lambda: cuda.used)
    device_count = staticmethod(lambda: 2)
def stats(device):
    n = memory.live if device == memory.device else 0
    each = {"requested": 500, "allocated": 512, "active": 512, "reserved": 512}
    return {"num_alloc_retries": 3, **{name + "_bytes": {"all": {"current": n * size, "peak": 9 * size}} for name, size in each.items()}}
_C._cuda_memoryStats = stats
broken = False
`

// fakeC says that a mode of the program's is on, below which the agent's stays off.
const fakeC = `
observers = []
_cuda_isHistoryEnabled = lambda: False
_cuda_attach_out_of_memory_observer = observers.append
def _len_torch_dispatch_stack(): return 1
def _get_dispatch_stack_at(i): return None
class _functorch:
    def get_dynamic_layer_stack_depth(): return 0
_dispatch_tls_is_dispatch_key_included = _dispatch_tls_is_dispatch_key_excluded = _has_torch_function_variadic = DisableTorchFunctionSubclass = None
def _current_graph_task_id(): return -1
class _dynamo:
    class eval_frame:
        set_eval_frame = skip_code = lambda given: None
class _autograd:
    class SavedTensor: data = None
class DispatchKey: Python = None
`

// fakeOptimizer is the part of torch.optim that counts steps.
const fakeOptimizer = `
hooks = []
class Handle:
    def remove(self):
        hooks.clear()
def register_optimizer_step_post_hook(f):
    hooks.append(f)
    return Handle()
class Optimizer:
    def step(self):
        for h in hooks: h(self, (), {})
`

// withFakeTorch makes it what a script imports.
func withFakeTorch(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"torch/__init__.py": fakeTorch, "torch/_C.py": fakeC, "torch/optim/__init__.py": "", "torch/optim/optimizer.py": fakeOptimizer,
		"torch/utils/__init__.py": "", "torch/utils/_python_dispatch.py": "class TorchDispatchMode: pass\n_pop_mode = _push_mode = None\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PYTHONPATH", dir)
}

func TestTheAllocatorsHistoryIsRecordedOnceTheProgramUsesCUDA(t *testing.T) {
	withFakeTorch(t)
	for _, c := range []struct {
		name, program, stdout string
		snapshots             []string
	}{
		{"a program that never uses CUDA has none", "for _ in range(3): o.step()", "",
			[]string{"snapshot_1.json", "snapshot_2.json", "snapshot_3.json"}},
		{"it begins at the first step after CUDA was used", `
o.step()
torch.cuda.used = True
for torch.memory.live in 1, 2, 3: o.step()`, "history all alloc python 100000\n",
			[]string{"snapshot_1.json", "snapshot_2.pickle", "snapshot_3.pickle", "snapshot_4.pickle"}},
		{"there is one more before memory is out, and no other of the same step", `
torch.cuda.used = True
o.step()
torch.memory.live = 5
for _ in range(2): torch._C.observers[0](0, 1 << 30, 2 << 30, 0)`, "history all alloc python 100000\n",
			[]string{"snapshot_1.pickle", "snapshot_2.pickle"}},
		{"a loader's worker that uses CUDA has none", `
import sys, types
sys.modules["torch.utils.data._utils.worker"] = types.SimpleNamespace(_worker_info=object())
torch.cuda.used = True
o.step()`, "",
			[]string{"snapshot_1.json"}},
		{"of PyTorch 2.0, whose function has other arguments, too", `
torch.memory._record_memory_history = torch.of20
torch.cuda.used = True
o.step()`, "history True True 100000 True\n",
			[]string{"snapshot_1.pickle"}},
		{"what the program records by itself stays as it wants it", `
torch._C._cuda_isHistoryEnabled = lambda: True
torch.cuda.used = True
o.step()`, "",
			[]string{"snapshot_1.pickle"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runOf(t, record.Options{}, python(t), script(t, "import torch\nfrom torch.optim.optimizer import Optimizer\no = Optimizer()\n"+c.program))
			if r.ExitCode != 0 || r.stdout != c.stdout || r.stderr != "" {
				t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
			}
			names, err := filepath.Glob(filepath.Join(r.dir, "snapshot_*"))
			for i, n := range names {
				names[i] = filepath.Base(n)
			}
			if err != nil || !slices.Equal(names, c.snapshots) {
				t.Errorf("it has %q, want %q; notes %q", names, c.snapshots, r.Notes)
			}
		})
	}
}

func TestAProgramOnCUDAWithoutStepsIsRecordedByTheClock(t *testing.T) {
	heavytest.Skip(t, "two programs of 6 s")
	withFakeTorch(t)
	for _, every := range []time.Duration{0, 100 * time.Millisecond} {
		r := runOf(t, record.Options{Interval: every}, python(t), script(t, `
import time, torch
torch.cuda.used = True
for torch.memory.live in range(1, 61): time.sleep(0.1)
`))
		if r.ExitCode != 0 || r.stdout != "history all alloc python 100000\n" || r.stderr != "" || len(r.Notes) > 0 || r.Snapshots < 3 {
			t.Fatalf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
		}
		run, err := files.OpenRun(r.dir)
		if err != nil || run.Partial {
			t.Fatalf("%v, %v", run, err)
		}
		first, last := run.Snapshots[0].Devices[0], run.Snapshots[len(run.Snapshots)-1].Devices[0]
		if first.Kind != snapshot.CUDA || last.Meters.Allocated <= first.Meters.Allocated {
			t.Errorf("from %+v to %+v", first, last)
		}
	}
}

func TestTheAllocatorsCountersAreRecordedAtEachStep(t *testing.T) {
	withFakeTorch(t)
	r := runOf(t, record.Options{Every: 100}, python(t), script(t, `
import torch, memdiag
from torch.optim.optimizer import Optimizer
o = Optimizer()
torch.cuda.used = True
memdiag.mark(phase="träin")
for step in range(40):
    torch.memory.live = 1000 + step * 77 % 13
    o.step()
`))
	if r.ExitCode != 0 || r.stderr != "" || len(r.Notes) > 0 || r.Snapshots != 1 {
		t.Fatalf("%+v, %q", r.Outcome, r.stderr)
	}
	run, err := files.OpenRun(r.dir)
	if err != nil || run.Partial || run.Series == nil {
		t.Fatalf("%+v, %v", run, err)
	}
	d := run.Snapshots[0].Devices
	if gpu := d[1]; gpu.Peak != 9*512 || gpu.Retries != 3 {
		t.Errorf("the allocator's peak is %s and its retries %d", gpu.Peak, gpu.Retries)
	}
	if at := slices.IndexFunc(d, func(d snapshot.Device) bool { return d.Kind == snapshot.Process }); at < 0 || d[at].Peak < d[at].Meters.Driver || d[at].Meters.Driver <= 0 {
		t.Errorf("the process's peak is missing: %+v", d)
	}
	s := run.Series
	if len(s.Devices) != 2 || s.Devices[1].Kind != snapshot.CUDA || s.Devices[1].Index != 1 || len(s.Points) != 40 {
		t.Fatalf("%d points of %+v", len(s.Points), s.Devices)
	}
	for i, p := range s.Points {
		n := snapshot.Bytes(1000 + i*77%13)
		want := snapshot.Meters{Requested: 500 * n, Allocated: 512 * n, Active: 512 * n, Reserved: 512 * n, Driver: snapshot.Unknown}
		if p.Meters[0] != want || p.Mark.Step != int64(i+1) || p.Mark.Phase != "träin" || p.Mark.Epoch != snapshot.NoStep {
			t.Fatalf("point %d: %+v", i, p)
		}
		if p.Meters[1] != (snapshot.Meters{Driver: snapshot.Unknown}) || time.Since(p.Mark.Time).Abs() > time.Hour {
			t.Fatalf("point %d: %+v", i, p)
		}
	}
}

// TestPinnedMemoryIsCountedWherePyTorchHasNoRecordOfIt: what the program has of it is live, and what PyTorch has besides is free.
func TestPinnedMemoryIsCountedWherePyTorchHasNoRecordOfIt(t *testing.T) {
	withFakeTorch(t)
	for _, c := range []struct{ name, inUse, all string }{{"of later versions", "active", "allocated"}, {"of earlier versions", "allocated", "reserved"}} {
		t.Run(c.name, func(t *testing.T) {
			r := runOf(t, record.Options{Every: 1}, python(t), script(t, `
import torch
from torch.optim.optimizer import Optimizer
o = Optimizer()
torch.cuda.used, pinned = True, 0
torch._C._cuda_hostMemoryStats = lambda: {"allocations": {"current": 1}, "`+c.inUse+`_bytes": {"current": min(pinned, 4096)}, "`+c.all+`_bytes": {"current": pinned}}
for torch.memory.live in range(1, 21):
    pinned = 1024 * (torch.memory.live - 1)
    o.step()
`))
			if r.ExitCode != 0 || r.stderr != "" || len(r.Notes) > 0 {
				t.Fatalf("%+v, %q", r.Outcome, r.stderr)
			}
			run, err := files.OpenRun(r.dir)
			if err != nil || run.Partial {
				t.Fatalf("%+v, %v", run, err)
			}
			for i, s := range run.Snapshots {
				at := slices.IndexFunc(s.Devices, func(d snapshot.Device) bool { return d.Name == snapshot.PinnedCounts })
				if i == 0 {
					if at >= 0 {
						t.Errorf("there is pinned memory before there is any: %+v", s.Devices[at])
					}
					continue
				}
				all := snapshot.Bytes(1024 * (s.Mark.Step - 1))
				want := snapshot.Meters{Requested: min(all, 4096), Allocated: min(all, 4096), Active: min(all, 4096), Reserved: all, Driver: snapshot.Unknown}
				if at < 0 || s.Devices[at].Kind != snapshot.CPU || s.Devices[at].Index != 1 || s.Devices[at].Meters != want {
					t.Fatalf("step %d: %+v, want %+v", s.Mark.Step, s.Devices, want)
				}
			}
		})
	}
}

func TestWithoutCountersThereAreSnapshots(t *testing.T) {
	withFakeTorch(t)
	r := runOf(t, record.Options{}, python(t), script(t, `
import torch
from torch.optim.optimizer import Optimizer
o = Optimizer()
del torch._C._cuda_memoryStats
torch.cuda.used = True
for torch.memory.live in range(5): o.step()
`))
	if r.ExitCode != 0 || r.stderr != "" || r.Snapshots != 5 || len(r.Notes) != 1 || !r.noted("counters of each step are not recorded from step 2 on") {
		t.Errorf("%+v, %q", r.Outcome, r.stderr)
	}
}

func TestARefusalOfCUDAsHistoryIsSaidOnceAndStopsNothing(t *testing.T) {
	withFakeTorch(t)
	r := runOf(t, record.Options{}, python(t), script(t, `
import torch
from torch.optim.optimizer import Optimizer
o = Optimizer()
torch.cuda.used = torch.broken = True
for _ in range(5): o.step()
print("trained")`))
	if r.ExitCode != 0 || r.stdout != "history all alloc python 100000\ntrained\n" || r.stderr != "" {
		t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "no driver") || r.Steps != 5 {
		t.Errorf("%+v", r.Outcome)
	}
	if len(r.Unseen) != 1 || r.Unseen[0].Device != "cuda" || r.Unseen[0].What != r.Notes[0] {
		t.Errorf("unseen: %+v", r.Unseen)
	}
}

func TestAPyTorchWithoutAnObserverIsRecordedWithoutOne(t *testing.T) {
	withFakeTorch(t)
	r := runOf(t, record.Options{}, python(t), script(t, `
import torch
from torch.optim.optimizer import Optimizer
o = Optimizer()
del torch._C._cuda_attach_out_of_memory_observer, torch._C._cuda_isHistoryEnabled
torch.cuda.used = True
torch.memory.live = 1
for _ in range(3): o.step()`))
	if r.ExitCode != 0 || r.stderr != "" || r.Snapshots != 3 || r.Steps != 3 {
		t.Errorf("%+v, %q", r.Outcome, r.stderr)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "no snapshot when memory runs out") {
		t.Errorf("%q", r.Notes)
	}
}

func TestARecordingThatStopsEndsTheHistoryButNotAForkedChilds(t *testing.T) {
	withFakeTorch(t)
	r := runOf(t, record.Options{Every: 1}, python(t), script(t, `
import os
import torch
from torch.optim.optimizer import Optimizer
o = Optimizer()
torch.cuda.used = True
o.step()
if os.fork() == 0:
    os._exit(0)
os.wait()
del torch.memory._snapshot
for _ in range(4): o.step()`))
	want := "history all alloc python 100000\nhistory None all all "
	if r.ExitCode != 0 || !strings.HasPrefix(r.stdout, want) || strings.Count(r.stdout, "history") != 2 || r.stderr != "" {
		t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
	}
	if !r.noted("recording stopped after 3 errors") || len(r.Unseen) != 1 || r.Unseen[0].Device != "" {
		t.Errorf("%q, unseen %+v", r.Notes, r.Unseen)
	}
}

// fakeNVML and fakeDriver are what the agent asks of NVML and of CUDA's driver, which
// has the GPUs of NVML in the other order.
const (
	fakeNVML = `
#include <string.h>
#include <unistd.h>
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } process;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
	for (long i = 0; i < 2; i++) {
		const char *names[] = {"GPU-01010101-0101-0101-0101-010101010101", "MIG-00000000-0000-0000-0000-000000000000"};
		if (!strcmp(uuid, names[i])) { *handle = (void *)(i + 1); return 0; }
	}
	return 6;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory *m) {
	m->total = 8ull << 30; m->used = (handle == (void *)1 ? 3ull : 5ull) << 30; m->free = m->total - m->used;
	return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process *p) {
	if (handle == (void *)2) return 3;
	p[0] = (process){1, 7, 0, 0};
	p[1] = (process){getpid(), 2ull << 30, 0, 0};
	*count = 2;
	return 0;
}
`
	fakeDriver = `
#include <string.h>
int cuDeviceGet(int *device, int ordinal) { *device = ordinal + 10; return ordinal > 1; }
int cuDeviceGetUuid_v2(unsigned char *uuid, int device) { memset(uuid, device - 10, 16); return 0; }
`
)

// withFakeNVML puts both where a program finds its libraries.
func withFakeNVML(t *testing.T) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("no gcc here")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"libnvidia-ml.so.1": fakeNVML, "libcuda.so.1": fakeDriver} {
		build := exec.Command(gcc, "-shared", "-fPIC", "-x", "c", "-o", filepath.Join(dir, name), "-")
		build.Stdin = strings.NewReader(text)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Setenv("LD_LIBRARY_PATH", dir)
}

func TestTheDriversFiguresOfTheGPUAreRecorded(t *testing.T) {
	withFakeTorch(t)
	withFakeNVML(t)
	r := runOf(t, record.Options{}, python(t), script(t, `
import torch
from torch.optim.optimizer import Optimizer
o = Optimizer()
torch.cuda.used = True
torch.memory.live = 2
o.step()
torch.memory.device = 1
o.step()`))
	if r.ExitCode != 0 || r.stderr != "" || len(r.Notes) > 0 {
		t.Fatalf("%+v, %q", r.Outcome, r.stderr)
	}
	run, err := files.OpenRun(r.dir)
	if err != nil || len(run.Snapshots) != 2 {
		t.Fatalf("%v, %v", run, err)
	}
	const reserved = 1024
	// What only the whole GPU's figure is known of is an instance of a GPU.
	first, second := run.Snapshots[0].Devices[0], run.Snapshots[1].Devices[1]
	if first.Meters.Driver != 5<<30 || first.Limit != 3<<30+reserved {
		t.Errorf("of the first GPU: driver %v, limit %v", first.Meters.Driver, first.Limit)
	}
	own, whole := snapshot.Bytes(2<<30), slices.ContainsFunc(run.Snapshots[1].Notes, isWhole)
	if second.Meters.Driver == 3<<30 && whole {
		own = 3 << 30 // in a container NVML's process ids are not ours
	}
	if second.Meters.Driver != own || second.Limit != 5<<30+reserved {
		t.Errorf("of the second GPU: driver %v, limit %v", second.Meters.Driver, second.Limit)
	}
	if !slices.ContainsFunc(run.Snapshots[0].Notes, isWhole) || whole == (own == 2<<30) {
		t.Errorf("notes: %q, %q", run.Snapshots[0].Notes, run.Snapshots[1].Notes)
	}
	if d := run.Snapshots[1].Devices[0]; d.Meters.Driver != snapshot.Unknown || d.Limit != snapshot.Unknown {
		t.Errorf("a GPU without use has %+v", d)
	}
}

func isWhole(note string) bool { return strings.Contains(note, "of the whole GPU") }

func TestWhatABackwardAllocatesHasTheStackOfItsCall(t *testing.T) {
	agentProgram(t, `
import sys
from memdiag import _backward
b = _backward.Backward()
def backward(): b.called(sys._getframe(0))
def step(): backward()
own = {"filename": _backward.__file__, "line": 1, "name": "__torch_dispatch__"}
user = {"filename": "train.py", "line": 7, "name": "step"}
def taken(*frames):
    blocks = [{"address": i, "requested_size": 100 + i, "state": "active_allocated", "frames": list(f)} for i, f in enumerate(frames)]
    events = [{"action": a, "addr": 900 + i, "size": 100, "frames": list(f)} for a in ("alloc", "oom", "free_completed") for i, f in enumerate(frames)] + [{"action": "snapshot"}]
    return {"segments": [{"blocks": blocks}], "device_traces": [events]}
def told(*frames):
    t = taken(*frames)
    b.complete(t)
    return [[f["name"] for f in x["frames"]] for x in t["segments"][0]["blocks"] + t["device_traces"][0] if "frames" in x]
print(told([], [user]))  # no backward yet, and the first is older than the recording
step()
print(told([], [user], [own], []))
print(len(b.stacks), [f["name"] for f in b.shared()[0]])
for _ in range(3): step()
print(len(b.stacks), [f["name"] for f in b.shared()[0]])  # one function, called from two lines
b = _backward.Backward()
def library(): exec(compile("def call(): b.called(sys._getframe(0))", "/x/torch/y.py", "exec"), globals()); return call
call = library()
def train():
    call()
    call()
train()
print(len(b.stacks), [f["name"] for f in b.shared()[0]])  # two lines of one function
b = _backward.Backward()
b.complete(taken())
step()
t = taken([], [])
b.complete({"segments": t["segments"], "device_traces": []}, False)
print([x["frames"] for x in t["segments"][0]["blocks"]])  # the program has ended the record
t = taken([], [], [], [user])
b.complete(t)
print([len(x["frames"]) for x in t["segments"][0]["blocks"]])  # and has begun it again
t = taken([], [], [], [user], [], [])
b.complete(t, True, 105)
print([len(x["frames"]) for x in t["segments"][0]["blocks"]])  # the last one is a workspace
`, `[[], ['step'], [], ['step'], [], ['step'], [], ['step']]
[[], ['step'], ['backward', 'step', '<module>'], ['backward', 'step', '<module>'], ['backward', 'step', '<module>'], ['step'], ['backward', 'step', '<module>'], ['backward', 'step', '<module>'], ['backward', 'step', '<module>'], ['step'], ['backward', 'step', '<module>'], ['backward', 'step', '<module>'], [], ['step'], ['__torch_dispatch__'], []]
1 ['backward', 'step', '<module>']
2 ['backward', 'step']
2 ['<module>']
[[], []]
[0, 0, 3, 1]
[0, 0, 3, 1, 3, 0]
`)
}

func TestWhatTheRecordOfAllocationsTakesIsCounted(t *testing.T) {
	agentProgram(t, `
from memdiag import _ring
r = _ring.Ring(1000)
stats = lambda allocated, freed: [{"allocation": {"all": {"allocated": allocated, "freed": freed}}}, {}]
print(r.bytes(stats(50, 40), 1), r.bytes(stats(100, 91), 1))
alloc = {"action": "alloc", "frames": [1] * 10, "user_metadata": "{}"}
r.learn([[alloc, {"action": "free_completed", "frames": [1] * 10}], []])
print(r.each, r.bytes(stats(100, 91), 1), r.bytes(stats(100, 91), 2), r.bytes(stats(9000, 9000), 1), r.bytes(stats(0, 0), 1), r.bytes([], 1))
r = _ring.Ring(1000)  # of an accelerator without counts
print(r.bytes([{}], 1))
r.learn([[alloc, {"action": "alloc"}]])
print(r.bytes([{}], 1))
`, "272 37744\n296.5 47490 80020 435900 435900 0\n136\n1265\n")
}

func TestWatchingCostsWhatTheStepsOfAGPUShow(t *testing.T) {
	agentProgram(t, `
from memdiag import _price, _sampler
p = _price.Pace()
for n in range(3):
    print(round(p.cost(0.001), 6), end=" ")
    p.took(0.030, 0.002)
    p.took(0.010)
print(round(p.cost(0.001), 6), p.cost(0.0))
for n in range(9):
    p.took(0.031)  # of longer steps, which were not watched
print(p.cost(0.001))
s = _sampler.Sampler(0.1, 0.015)
s.spare()
print(s.share, s.all_share, s.near_share)
weights = []
for n in range(64):  # steps of 10 ms, each 20 ms longer if it is recorded
    if s.next(0.01 * n):
        weights.append(s.weight)
        s.costs(0.02)
print(*weights)
`, "0.005 0.005 0.005 0.01 0.0\n0.001\n0.005 0.005 0.005\n1 1 1 1 1 1 2 2 2 2 2 4 8 16\n")
}
