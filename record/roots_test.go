//go:build unix

package record_test

import "testing"

// spawned runs a loader's worker as spawn does, of which only its loop has the dataset.
const spawned = `
import sys, types
loop = types.ModuleType("torch.utils.data._utils.worker")
exec(compile("def _worker_loop(dataset, then):\n    then()\n", "/site-packages/torch/utils/data/_utils/worker.py", "exec"), loop.__dict__)
from memdiag import _roots

class Roots(_roots.Roots):
    def __init__(self):
        self.seen, self.near, self.names = set(), False, []
    def over(self):
        return False
    def push(self, v, node, label, kind):
        self.names.append(node.label + label)

def found():
    roots = Roots()
    loop._worker_loop(["a dataset"], roots.programs)
    return "_worker_loop.<locals>.dataset" in roots.names

print(found())
sys.modules["__mp_main__"] = types.ModuleType("__mp_main__")
print(found())
`

func TestTheDatasetOfASpawnedWorkerIsARoot(t *testing.T) {
	t.Parallel()
	agentProgram(t, spawned, "False\nTrue\n")
}

// looped has a generator that nothing but a loop holds, and that ends.
const looped = `
from memdiag import _walk
from memdiag._length import length

class Thing:
    pass
class Batches:
    def __init__(self):
        self.staged = {}
    def __iter__(self):
        for i in range(4):
            self.staged[i] = Thing()
            yield i

class Finds(_walk.Walk):
    def visit(self, obj, node):
        super().visit(obj, node)
        if type(obj) is Thing:
            _walk.vote(self.hits, "", node)

for i in Batches():
    if i == 1:
        walk = Finds(None, {1: "all"}, {})
        walk.run(60)
        path, kind, items, nodes = walk.hits[""].holder()
        print(path, kind, items)
    if i == 3:
        print(length(*nodes, _walk.key_text))
try:
    print(length(*nodes, _walk.key_text))
except LookupError as e:
    print(e)
`

func TestWhatAWaitingGeneratorHasIsReadAgainWithoutAWalk(t *testing.T) {
	t.Parallel()
	agentProgram(t, looped, "Batches.staged dict 2\n4\nit has ended\n")
}
