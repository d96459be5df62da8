//go:build unix

package record_test

import "testing"

// clocked is a program of 100 s, of which snapshots take 0.4 s each, and asks each 0.1 s.
const clocked = `
from memdiag._agent import Agent

a = Agent({"dir": ".", "rank": -1})
now, taken = 0.0, []
a.elapsed = lambda: now
while now < 100:
    now += 0.1
    if a.affordable(1.5, 0.1) or a.late():
        taken.append(now)
        a.last, a.since = 0.4, now
        a.spent += a.last
gaps = [y - x for x, y in zip(taken, taken[1:])]
assert all(g <= 0.26 * x or g <= 0.4 / 0.15 + 0.2 for g, x in zip(gaps, taken)), gaps
`

func TestASnapshotByTheClockComesForEachQuarterOfTheTime(t *testing.T) {
	t.Parallel()
	agentProgram(t, clocked, "")
}
