package record_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeAccelerator is a PyTorch whose allocator's functions are those of one version.
const fakeAccelerator = `
import sys, types
from memdiag import _accelerator
def torch(history, snapshot=lambda mempool_id=None: [], name="cuda", c=(), **more):
    memory = types.SimpleNamespace(_record_memory_history=history, _snapshot=lambda: "whole", memory_snapshot=snapshot)
    module = types.SimpleNamespace(memory=memory, is_initialized=lambda: True, device_count=lambda: 1)
    version = types.SimpleNamespace(cuda="13.0" if name == "cuda" else None)
    return types.SimpleNamespace(version=version, _C=types.SimpleNamespace(**dict(c)), __version__="x", **{name: module}, **more)
def shown(*args, **kwargs): print(*args, *("%s=%s" % kv for kv in kwargs.items()))
`

func TestTheAllocatorIsAskedForWhatItsVersionHas(t *testing.T) {
	agentProgram(t, fakeAccelerator+`
def of20(enabled, record_context=True, trace_alloc_max_entries=1, trace_alloc_record_context=False, device=None, record_context_cpp=False):
    shown(enabled, trace_alloc_max_entries, trace_alloc_record_context)
def of21(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None): shown(enabled, context, stacks, max_entries)
def of25(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False, compile_context=False,
         global_record_annotations=False): shown(enabled, context, stacks, max_entries)
def of210(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False, compile_context=False,
          global_record_annotations=False, skip_actions=None): shown(enabled, context, stacks, max_entries, skip_actions)
def of214(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False, compile_context=False,
          global_record_annotations=False, skip_actions=None, record_pinned_host_memory=False, record_cuda=True):
    shown(enabled, context, stacks, max_entries, skip_actions, record_pinned_host_memory)
def unsaid(enabled="all", *args, **kwargs): shown(enabled, *args, **kwargs)
def light(mempool_id=None, include_traces=True): return ["light"]
for history in of20, of21, of25, of210, of214, unsaid:
    for snapshot in (lambda mempool_id=None: ["whole"]), light:
        gpu, = _accelerator.find(torch(history, snapshot))
        gpu.ask()
        gpu.record()
        gpu.stamp(3)
        print(gpu.skips(), gpu.snapshot(False), gpu.snapshot(True), gpu.stamps)
`, strings.NewReplacer("WHOLE", "whole whole False\n", "LIGHT", "{'segments': ['light'], 'device_traces': []} whole False\n").Replace(
		"True 100000 True\nFalse WHOLETrue 100000 True\nFalse LIGHT"+
			strings.Repeat("all alloc python 100000\nFalse WHOLEall alloc python 100000\nFalse LIGHT", 2)+
			"all alloc python 100000 ['free_requested']\nTrue WHOLEall alloc python 100000 ['free_requested']\nTrue LIGHT"+
			"all alloc python 100000 ['free_requested'] True\nTrue WHOLEall alloc python 100000 ['free_requested'] True\nTrue LIGHT"+
			"all context=alloc stacks=python max_entries=100000\nFalse WHOLEall context=alloc stacks=python max_entries=100000\nFalse LIGHT"))
}

func TestStepsAreStampedOnAllocationsUnlessTheProgramStampsThem(t *testing.T) {
	agentProgram(t, fakeAccelerator+`
stamped = [""]
c = {"_cuda_memoryMetadataSupported": lambda: supported, "_cuda_getMemoryMetadata": lambda: stamped[-1], "_cuda_setMemoryMetadata": stamped.append}
for supported in True, False:
    gpu, = _accelerator.find(torch(lambda *a, **k: None, c=c))
    gpu.ask()
    gpu.record()
    for step in 1, 2: gpu.stamp(step)
    stamped.append("the program's")
    gpu.stamp(3)
    print(stamped)
    stamped[:] = [""]
`, `['', '{"memdiag_step":1}', '{"memdiag_step":2}', "the program's"]
['', "the program's"]
`)
}

func TestAcceleratorsThatRecordThemselvesAreFound(t *testing.T) {
	agentProgram(t, fakeAccelerator+`
history = lambda *a, **k: None
for name, c in ("cuda", {}), ("xpu", {"_has_xpu": True}), ("xpu", {"_has_xpu": False}), ("npu", {"_get_privateuse1_backend_name": lambda: "npu"}), ("npu", {"_get_privateuse1_backend_name": lambda: "privateuseone"}):
    print([gpu.name for gpu in _accelerator.find(torch(history, name=name, c=c))])
bare = torch(history, name="npu", c={"_get_privateuse1_backend_name": lambda: "npu"})
del bare.npu.memory._snapshot
print(_accelerator.find(bare))
del bare.npu
print(_accelerator.find(bare))
`, "['cuda']\n['xpu']\n[]\n['npu']\n[]\n[]\n[]\n")
}

func TestCommunicatorsAreCountedAndNCCLsLogIsRead(t *testing.T) {
	log := filepath.Join(t.TempDir(), "nccl.%p.%h")
	for name, value := range map[string]string{"NCCL_DEBUG_FILE": log, "NCCL_DEBUG_SUBSYS": "INIT,ALLOC"} {
		t.Setenv(name, value)
	}
	agentProgram(t, `
import os, socket, sys, types
from memdiag import _communicators
log = _communicators.Log()
print(log.figures())
def write(*lines):
    with open(os.environ["NCCL_DEBUG_FILE"].replace("%p", str(os.getpid())).replace("%h", socket.gethostname().split(".")[0]), "a") as f:
        f.write("".join(lines))
write("host:1:2 [0] NCCL INFO init.cc:1 (f) Cuda Alloc Size 4194304 pointer 0x7f0000000000 memType 0\n",
      "host:1:2 [0] NCCL INFO init.cc:1 (f) Cuda Host Alloc Size 999 pointer 0x7f0000000001\n",
      "host:1:2 [1] NCCL INFO init.cc:1 (f) Cuda CallocAsync Size 100 pointer 0x7f0000000002 memType 0\n", "host:1:2 [1] NCCL INFO init.cc:1 (f) Cuda Al")
print(log.figures())
write("loc Size 50 pointer 0x7f0000000003 memType 0\n", "\0\xff" * 5000, "\nhost [99999] NCCL INFO Cuda Alloc Size 7 pointer 0x1\n")
sys.modules["torch.distributed.distributed_c10d"] = types.SimpleNamespace(_world=types.SimpleNamespace(pg_backend_config={1: "cuda:nccl,cpu:gloo", 2: "cpu:gloo", 3: "cpu:nccl,cuda:nccl"}))
print(log.figures())
`, "{}\n{'nccl': '4194304,100'}\n{'communicators': 2, 'nccl': '4194304,150'}\n")
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(log), "*")); len(left) != 1 {
		t.Errorf("%q", left)
	}
	_ = os.Remove(log)
}

func TestWhatPyTorchGivesCuBLASIsAWorkspace(t *testing.T) {
	t.Setenv("CUBLAS_WORKSPACE_CONFIG", "")
	agentProgram(t, `
import os, types
from memdiag import _accelerator, _blocks, _categories
def size(major, hip=None):
    cuda = types.SimpleNamespace(get_device_capability=lambda: (major, 0))
    return _accelerator.Accelerator(types.SimpleNamespace(cuda=cuda, version=types.SimpleNamespace(hip=hip)), "cuda").workspace()
print(size(8), size(9), size(10), size(9, "7.0"))
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:2:16:8"
print(size(9))
b = _blocks.Blocks()
b.workspace = 1000
block = lambda address, asked: {"address": address, "size": 1024, "requested_size": asked, "state": "active_allocated", "frames": []}
b.look([{"address": 0, "blocks": [block(0, 1000), block(1024, 1001)]}])
found = _categories.Found(types.SimpleNamespace(Tensor=None, nn=types.SimpleNamespace(Parameter=None)), b, None, None)
found.on_gpus(b.workspaces, _categories.WORKSPACE)
print(found.gpu)
`, "8519680 33554432 33554432 0\n8519680\n{0: 7}\n")
}
