//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/record/recordtest"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// purposes has a model, a copy of it that no constructor made, an optimizer, a loss whose graph is kept, and classes that would be
// heard if they were asked.
const purposes = `
import copy, sys, types, weakref
import torch
from memdiag import _categories

class Heard(dict):
    def __getattribute__(self, name):
        raise SystemExit("the program was asked for " + name)
    def values(self):
        raise SystemExit("the program was asked")

class Talking(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args, **kwargs):
        raise SystemExit("a tensor was asked")

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    def __getattr__(self, name):
        if sys._getframe(1).f_globals["__name__"].startswith("memdiag"):
            raise SystemExit("the model was asked for " + name)
        return super().__getattr__(name)

class Holder:
    pass

holder = Holder()
holder.model, holder.heard, holder.talking = Model(), Heard(), torch.zeros(2).as_subclass(Talking)
model = holder.model
teacher = [copy.deepcopy(model)]
free = torch.nn.Parameter(torch.zeros(7))
optimizer = torch.optim.Adam([*model.parameters(), free])
other = torch.zeros(9)
loss = (model.inner(torch.ones(2, 4)).sum() + free.sum())
loss.backward()
optimizer.step()

source = types.SimpleNamespace(module=torch)
agent = types.SimpleNamespace(step=1, ticks=0)
categories = _categories.Categories(agent, source)
categories.stepped(optimizer)
categories.stepped(optimizer)

def address(t):
    return t.untyped_storage()._cdata

def want(found, what, tensors, category):
    for t in tensors:
        got = found.cpu.get(address(t), 0)
        assert got == category, (what, got, category)

nowhere = lambda t: False

def find(quiet=True, blocks=None, parameters=(), results=()):
    told = _categories.Told()
    told.parameters, told.results = set(parameters), set(results)
    found = _categories.Found(torch, blocks, told, nowhere)
    with torch._C.DisableTorchFunction():
        categories.find(found, quiet)
    return found

found = find()
want(found, "parameters", [*model.parameters(), *teacher[0].parameters(), free], _categories.PARAMETER)
want(found, "buffers", [b for m in (model, teacher[0]) for b in m.buffers()], _categories.BUFFER)
want(found, "gradients", [p.grad for p in model.parameters()], _categories.GRADIENT)
want(found, "moments", [s[k] for s in optimizer.state.values() for k in ("exp_avg", "exp_avg_sq", "step")], _categories.STATE)
want(found, "what is for nothing that is known", [other, loss], 0)
assert not found.gpu and len(categories.optimizers) == 1

want(find(quiet=False), "gradients while autograd may run", [p.grad for p in model.parameters()], 0)
found = find(results={address(loss), address(free)}, parameters={address(other)})
want(found, "a result of a census", [loss], _categories.RESULT)
want(found, "a parameter of a census", [other], _categories.PARAMETER)
want(found, "a result that is known as a parameter", [free], _categories.PARAMETER)

# A search finds a model once, and not what came after it, up to the next one.
later = torch.nn.Linear(3, 3)
want(find(), "a model between searches", [later.weight], 0)
agent.step = 9
want(find(), "a model at the next search", [later.weight], _categories.PARAMETER)

# Storages that nobody watched are known by their size alone.
told = _categories.Told()
told.add({1: (64, _categories._census.RESULT), 2: (64, 0), 3: (8, 0), 4: (8, 0), 5: (64, 0)}, {5})
found = _categories.Found(torch, None, told, nowhere)
found.also(told.results, _categories.RESULT)
assert found.of(1, 64, 1) == _categories.RESULT and found.of(1, 64, 2) == 0 and found.of(5, 64, 2) == 0
assert sorted(found.shares(64, 2)) == [(0, 1), (_categories.RESULT, 1)] and found.shares(64, 1) == [(0, 1)]
assert found.shares(8, 7) == [(0, 7)]
found.also([3, 4], _categories.STATE)
assert found.shares(8, 7) == [(0, 7)], "it is counted once"
found = _categories.Found(torch, None, told, nowhere)
found.also([3, 4], _categories.STATE)
assert found.shares(8, 7) == [(_categories.STATE, 7)] and found.of(3, 8, 3) == _categories.STATE

# Of a distributed tensor the part on this rank counts.
import torch.distributed
from torch.distributed.tensor import DTensor, Replicate, init_device_mesh
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
whole = torch.nn.Parameter(DTensor.from_local(torch.ones(5), init_device_mesh("cpu", (1,)), [Replicate()]))
sharded = torch.optim.Adam([whole])
whole.square().sum().backward()
sharded.step()
categories.stepped(sharded)
found = find()
assert type(whole) is DTensor
want(found, "a distributed parameter", [whole._local_tensor], _categories.PARAMETER)
want(found, "its gradient", [whole.grad._local_tensor], _categories.GRADIENT)
want(found, "its moments", [sharded.state[whole][k]._local_tensor for k in ("exp_avg", "exp_avg_sq")], _categories.STATE)
torch.distributed.destroy_process_group()
del sharded, whole

alive = weakref.ref(optimizer), weakref.ref(model)
del optimizer, loss, model, holder.model, found
categories.stepped(torch.optim.SGD([torch.nn.Parameter(torch.zeros(3))]))
assert [r() for r in alive] == [None, None], "it keeps what the program lets go of"
want(find(), "the copy alone", teacher[0].parameters(), _categories.PARAMETER)
assert not categories.optimizers

# On a GPU the block in which a storage lies counts.
blocks = types.SimpleNamespace(start=lambda pointer: 4096 if pointer == address(free) else None, workspaces=())
torch.Tensor.is_cpu, torch.UntypedStorage.data_ptr = property(lambda t: False), lambda s: s._cdata
kept = torch.optim.SGD([free])
categories.stepped(kept)
found = find(False, blocks)
assert found.gpu == {4096: _categories.PARAMETER} and not found.cpu, (found.gpu, found.cpu)
`

func TestWhatTensorsAreFor(t *testing.T) {
	t.Parallel()
	folder, err := record.Package(filepath.Join(t.TempDir(), "agent"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := recordtest.Command(t, torchPython(t), "-c", purposes)
	cmd.Env = append(cmd.Env, "PYTHONPATH="+folder)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// The script says what its tensors take; memdiag must find the same, without being told.
func TestCategoriesOfATrainingAreItsOwn(t *testing.T) {
	t.Parallel()
	const script = "../../testdata/scripts/categories.py"
	for device, program := range map[string][]string{"cpu:0": {script}, "cuda:0": {standIn, script}} {
		t.Run(device, func(t *testing.T) {
			if device == "cuda:0" {
				heavytest.Skip(t, "the same training on the stand-in")
			}
			t.Parallel()
			r := recordProgram(t, []string{"record", "--every", "10"}, append([]string{torchPython(t)}, program...)...)
			want := make(map[string]int64)
			if err := json.Unmarshal([]byte(r.stdout), &want); err != nil {
				t.Fatalf("%v: %s", err, r.said)
			}
			var text, errs bytes.Buffer
			if code := run([]string{"show", "--format", "json", r.dir}, nil, &text, &errs); code != exitFine {
				t.Fatalf("show ended with %d: %s", code, &errs)
			}
			var shown struct {
				Devices []struct {
					Device     string
					Categories []struct {
						Category  string
						Requested int64 `json:"requested_bytes"`
					}
				}
			}
			if err := json.Unmarshal(text.Bytes(), &shown); err != nil {
				t.Fatal(err)
			}
			got := make(map[string]int64)
			for _, d := range shown.Devices {
				for _, c := range d.Categories {
					if d.Device == device && c.Category != "" {
						got[c.Category] = c.Requested
					}
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-truth +shown\n%s\n%s", d, text.Bytes())
			}
		})
	}
}
