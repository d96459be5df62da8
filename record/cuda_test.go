//go:build unix

package record_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record"
)

// fakeTorch is what the agent uses of a PyTorch with CUDA, by its documentation: the
// path to a GPU is followed where there is none. What its parts were asked goes to
// standard output.
const fakeTorch = `
import sys
__version__ = "2.9.0+cu130"
class Tensor: pass
class UntypedStorage:
    _expired = _free_weak_ref = None  # there is none on the CPU
class nn:
    class Module:
        def eval(self): return self
from torch import _C
class memory:
    live = 0
    @staticmethod
    def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None):
        print("history", enabled, context, stacks, max_entries)
        if broken: raise RuntimeError("no driver")
    @staticmethod
    def _snapshot(device=None):
        frames = [{"name": "forward", "filename": "model.py", "line": 7}]
        blocks = [{"address": 4096 + 512 * i, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": frames} for i in range(memory.live)]
        total = 512 * memory.live
        segment = {"device": 0, "address": 4096, "total_size": total, "allocated_size": total, "active_size": total,
            "requested_size": 500 * memory.live, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
            "is_expandable": False, "frames": [], "blocks": blocks}
        return {"segments": [segment] if blocks else [], "device_traces": [[]], "allocator_settings": {}}
class cuda:
    used = False
    memory = memory
    is_available = staticmethod(lambda: True)
    is_initialized = staticmethod(lambda: cuda.used)
broken = False
`

// fakeC says that a mode of the program's is on, below which the agent's stays off.
const fakeC = `
observers = []
_cuda_attach_out_of_memory_observer = observers.append
def _len_torch_dispatch_stack(): return 1
`

// fakeOptimizer is the part of torch.optim that counts steps.
const fakeOptimizer = `
hooks = []
def register_optimizer_step_post_hook(f):
    hooks.append(f)
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
		"torch/utils/__init__.py": "", "torch/utils/_python_dispatch.py": "class TorchDispatchMode: pass\n",
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
}
