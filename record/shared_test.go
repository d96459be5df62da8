//go:build linux

package record_test

import "testing"

// segments makes three segments of shared memory, of which one is unlinked, and opens one a second time.
const segments = `
from types import SimpleNamespace
from memdiag import _agent, _shared

shared = _shared.Shared(SimpleNamespace(stopped=False, asleep=False, step=3, replace=setattr))
shared.start()
from multiprocessing.shared_memory import SharedMemory

def make(size):
    return SharedMemory(create=True, size=size)

def held():
    s = _agent.Snapshot()
    shared.fill(s)
    return s

assert not held().devices
made = [make(8192), make(8192), make(4096)]
SharedMemory(made[0].name).close()
made[0].close()
s = held()
assert s.devices[0]["kind"] == "shm" and s.devices[0]["meters"]["allocated"] == 20480, s.devices
assert s.blocks["size"] == [8192, 8192, 4096] and s.blocks["birth"] == [3, 3, 3], s.blocks
names = [s.stacks.frames[f][0] for f in s.stacks.stacks[s.blocks["stack"][0]]]
assert names[1] == "make", names
made[1].unlink()
assert held().blocks["size"] == [8192, 4096]
try:
    SharedMemory(create=True, size=-1)
except ValueError:
    pass
try:
    SharedMemory("there is none")
except FileNotFoundError:
    pass
for m in made[0], made[2]:
    m.unlink()
assert held().blocks["size"] == []
import mmap, os, pickle
assert pickle.loads(pickle.dumps(os.memfd_create)) is os.memfd_create
first, second = os.memfd_create("a"), os.memfd_create("b")
for fd in first, second:
    os.write(fd, bytes(5000))
kept = mmap.mmap(first, 4096)  # which has a descriptor of its own
os.close(first)
assert held().blocks["size"] == [5000, 5000] and shared.held() == 10000, held().blocks
kept.close()
os.close(second)
assert held().blocks["size"] == []
`

func TestSegmentsOfSharedMemoryAreFollowed(t *testing.T) {
	t.Parallel()
	agentProgram(t, segments, "")
}
