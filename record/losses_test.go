//go:build unix

package record_test

import "testing"

// backwards has losses taken backward; arrays stand in for tensors.
const backwards = `
import array, os, sys, tempfile, time, types
from memdiag import _losses

made = []
class Tensor:
    is_cpu, is_cuda = True, False
    def __init__(self, code, bits, dtype, numbers=1):
        self.memory, self.dtype, self.numbers = array.array(code, [bits] * numbers), dtype, numbers
    def numel(self):
        return self.numbers
    def element_size(self):
        return self.memory.itemsize
    def data_ptr(self):
        if layers:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        return self.memory.buffer_info()[0]
class Subclass(Tensor):
    pass
class Far(Tensor):
    is_cpu, is_cuda = False, True
    def item(self):
        return 0.25

torch = types.SimpleNamespace(Tensor=Tensor, float32="f4", float64="f8", float16="f2", bfloat16="b2", cuda=types.SimpleNamespace(is_current_stream_capturing=lambda: captured), autograd=types.SimpleNamespace(_make_grads=lambda outputs, *_: made.append(len(outputs))))
sys.modules["torch"] = torch
captured, layers = False, 0
agent = types.SimpleNamespace(settings={}, step=4, stopped=False, number=0, owner={}, dir=tempfile.mkdtemp(), suffix=lambda: "_rank3", note=print, replace=setattr, switch=lambda callback: None, torch=types.SimpleNamespace(backward=lambda: None))
losses = _losses.Losses(agent)
losses.watch(torch)
def backward(*tensors):
    torch.autograd._make_grads(tensors, None)

backward(Tensor("I", 0x3dcccccd, "f4"))
backward(Tensor("Q", 0x3fb999999999999a, "f8"), Tensor("H", 0x2e66, "f2"))
backward(Tensor("H", 0x3dcd, "b2"), Tensor("I", 0x7fc00001, "f4"))
backward(Tensor("I", 0, "f4", 2), Subclass("I", 0, "f4"), Tensor("I", 0, "i4"), None)
layers = 1  # a function of torch.func
backward(Tensor("I", 0, "f4"))
layers = 0
agent.owner["step"], agent.step = True, 5
losses.flush()
losses.told("0.5")
losses.flush()
print(made, losses.errors)
text = open(os.path.join(agent.dir, "losses_rank3.csv")).read()
print(text, end="")

_losses.POINTS = 10
for i in range(100):
    losses.told(i)
print([int(float(line.split(b",")[2])) for line in losses.pending][::6])
losses.fresh()
far = Far("I", 0, "f4")
losses.tensor = Far
for agent.settings["experiment"], captured in (False, False), (True, True), (True, False):
    losses.written = time.monotonic()
    losses.backward([far])
    print(losses.pending)
losses.tensor = Tensor
losses.fresh()
for _ in range(3):
    losses.backward(4)
backward(Tensor("I", 0, "f4"))
print(losses.pending, len(made))
`

func TestLossesAreRecordedWithAllTheirBits(t *testing.T) {
	t.Parallel()
	agentProgram(t, backwards, `[1, 2, 2, 4, 1] 0
step,source,loss
5,backward,0.10000000149011612
5,backward,0.1
5,backward,0.0999755859375
5,backward,0.10009765625
5,backward,nan
5,mark,0.5
[0, 6, 15, 27, 51, 79]
[]
[]
[b'6,backward,0.25\n']
losses are no longer recorded: TypeError: 'int' object is not iterable
[] 6
`)
}
