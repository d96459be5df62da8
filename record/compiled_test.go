package record_test

import "testing"

// Before PyTorch 2.10 a compiled function that was called below the mode was compiled anew each time: after eight times the program ended.
func TestTheModeIsLeftWhileACompiledFunctionRuns(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import types
from memdiag import _compiled

stack = []
class Mode:
    def __enter__(self): stack.append(self)
    def __exit__(self, *_): stack.pop()
ours, theirs, callback = Mode(), Mode(), None
def set_eval_frame(new):
    global callback
    prior, callback = callback, new
    return prior
c = types.SimpleNamespace(set_eval_frame=set_eval_frame, skip_code=lambda code: None)
torch = types.SimpleNamespace(_C=types.SimpleNamespace(_dynamo=types.SimpleNamespace(eval_frame=c)))
source = types.SimpleNamespace(agent=types.SimpleNamespace(replace=setattr), modes=lambda: len(stack), top=lambda: stack[-1] if stack[-1:] == [ours] else None)
_compiled.Compiled(source).watch(torch)

def compiled(inner):
    prior = c.set_eval_frame(None)
    c.set_eval_frame(print)
    inner()
    c.set_eval_frame(None)
    c.set_eval_frame(prior)
def disabled():
    prior = c.set_eval_frame(None)
    print(len(stack), "in what it leaves out")
    c.set_eval_frame(prior)
    print(len(stack), "after that")

compiled(lambda: print(len(stack), "without a mode"))
ours.__enter__()
compiled(lambda: print(len(stack), "within"))
compiled(disabled)
print(len(stack), callback, "after it")
theirs.__enter__()
compiled(lambda: print(len(stack), "below the program's"))
theirs.__exit__()
compiled(theirs.__enter__)
print(stack == [theirs], "the program has entered one meanwhile")
`, "0 without a mode\n0 within\n1 in what it leaves out\n0 after that\n1 None after it\n2 below the program's\nTrue the program has entered one meanwhile\n")
}

// PyTorch says that it compiles while any thread does. In the others, the optimizers' hooks raised an error: each thread of the program that
// trained ended.
func TestHooksAreCalledWhileAnotherThreadCompiles(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import sys, threading, types
from memdiag import _compiled

tls = threading.local()
class InstructionTranslator:
    @staticmethod
    def current_tx():
        return tls.current_tx
sys.modules["torch._dynamo.symbolic_convert"] = types.SimpleNamespace(InstructionTranslator=InstructionTranslator)
torch = types.SimpleNamespace(compiler=types.SimpleNamespace(is_compiling=lambda: True))
hook = _compiled.apart(types.SimpleNamespace(switch=lambda callback: None), torch, print)
for one_graph in True, False:
    tls.current_tx = types.SimpleNamespace(one_graph=one_graph)
    hook("within", "one graph" if one_graph else "graphs")
    other = threading.Thread(target=hook, args=("beside it",))
    other.start()
    other.join()
del sys.modules["torch._dynamo.symbolic_convert"]
hook("without it")
`, "beside it\nwithin graphs\nbeside it\nwithout it\n")
}
