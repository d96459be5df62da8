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
