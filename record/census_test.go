//go:build unix

package record_test

import "testing"

// counted shares out, of storages by address, those that nobody watched. The names of
// the watched are their stacks.
const counted = `
from memdiag._census import share_out

def check(what, sizes, watched, sampled, growing, counts, rest, each=1):
    got = share_out(sizes, each, {a: [stack, sizes.get(a, 4)] for a, stack in watched.items()}, sampled, growing)
    got = got[0], {size: n for size, (n, _) in got[1].items()}
    assert got == (counts, rest), (what, got)

check("of a size, evenly among those that were sampled",
      {1: 64, 2: 64, 3: 64, 11: 64, 12: 64, 13: 64, 14: 64, 15: 64}, {1: "a", 2: "b", 3: "a"}, {1, 2}, {"a"}, {1: 3, 2: 4, 3: 1}, {})
check("of a size that was last seen when all was watched, to what grew",
      {1: 64, 2: 64, 11: 64}, {1: "grows", 2: "once"}, set(), {"grows"}, {1: 2, 2: 1}, {})
check("of a size that no watched one has, to those that are nearly as large",
      {1: 100, 2: 4000, 11: 120, 12: 3000, 13: 3001}, {1: "a", 2: "b"}, {1, 2}, set(), {1: 2, 2: 3}, {})
check("what is left has no stack", {1: 64, 11: 9000, 12: 9000}, {1: "a"}, {1}, set(), {1: 1}, {9000: 2})
check("what the graph alone holds is not counted", {2: 64}, {1: "graph", 2: "a"}, {1, 2}, set(), {2: 1}, {})
check("of many tensors some were looked into, which stand for the others",
      {2: 64, 11: 64, 12: 64, 13: 32}, {1: "a", 2: "b"}, {1, 2}, set(), {1: 1, 2: 21}, {32: 10}, each=10)
check("empty storages are none", {1: 64, 11: 0}, {1: "a"}, {1}, set(), {1: 1}, {})
`

func TestWhatNobodyWatchedIsSharedOutBySize(t *testing.T) {
	t.Parallel()
	agentProgram(t, counted, "")
}
