package record_test

import "testing"

// TestWeakReferencesAreFreedOnceWhereAThreadForks: a reference was freed before its entry went. The child of a fork between the two freed it
// again, and so did the end of the recording by an error in another thread.
func TestWeakReferencesAreFreedOnceWhereAThreadForks(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import types
from memdiag import _storages

def source(free):
    s = _storages.Storages.__new__(_storages.Storages)
    s.mode, s.weak = True, types.SimpleNamespace(_expired=lambda a: True, _free_weak_ref=free)
    s.table, s.young, s.late = {a: [0, 1, 0, 1, 0] for a in range(1, 6)}, [1, 2, 3], [4, 5]
    return s

for sweep in "sweep", "sweep_young", "release":
    freed = []
    def free(a):
        freed.append(a)
        if len(freed) == 2:
            s.release()  # as in the child of a fork that another thread makes here
    s = source(free)
    getattr(s, sweep)()
    print(sweep, sorted(freed))
`, "sweep [1, 2, 3, 4, 5]\nsweep_young [1, 2, 3, 4, 5]\nrelease [1, 2, 3, 4, 5]\n")
}

// TestWatchesForgetAStorageBeforeItsReferenceIsFreed: in the child of a fork between the two, the watch freed it again.
func TestWatchesForgetAStorageBeforeItsReferenceIsFreed(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import types
from memdiag import _watch

freed = []
def free(a):
    freed.append((a, a in stays.before or a in stays.made))
storage = types.SimpleNamespace(_expired=lambda a: True, _free_weak_ref=free)
torch = types.SimpleNamespace(UntypedStorage=storage)
stays = _watch.Stays(types.SimpleNamespace(torch=types.SimpleNamespace(module=torch)), "train")
stays.calls, stays.ended, stays.collections, stays.before, stays.made, stays.judge = 1, 1, _watch.collections(), {1}, {2: (8, 1, 1)}, lambda: None
_watch.storages = lambda torch, deep: {}
stays.look()
print(freed)
`, "[(1, False), (2, False)]\n")
}
