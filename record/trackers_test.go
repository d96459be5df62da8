//go:build unix

package record_test

import "testing"

// away is a tracker whose server is away at times, by a clock that the test sets.
const away = `
import types
from memdiag import _trackers

clock, tried = [0], []
_trackers.time = types.SimpleNamespace(monotonic=lambda: clock[0])
class Server(_trackers.Tracker):
    name, opens, here, open = "server", "server.open", True, True
    def find(self):
        return self.open or None
    def points(self, run, step, values):
        tried.append(clock[0])
        if not self.here:
            raise OSError("no answer")
    def say(self, run, step, verdict):
        self.points(run, step, verdict)
agent = types.SimpleNamespace(owner={1: True}, note=print)
server, unseen = Server(agent), Server(agent)
unseen.open = False
trackers = types.SimpleNamespace(agent=agent, all=[server, unseen])
def at(*times):
    for clock[0] in times:
        for t in trackers.all:
            t.put(1, {"live": 1}, {"leaks": 1}, fresh=False)
    print(tried)
    tried.clear()
at(0)
server.here, server.fresh = False, True
at(*range(1, 70))
server.here = True
at(*range(70, 200))
server.here, server.said = False, None
at(*range(200, 204))
_trackers.Trackers.finish(trackers)
`

// TestATrackerIsTriedAgainAfterAnError: three errors in a whole run ended the logging, and a verdict that failed was sent twice a second.
func TestATrackerIsTriedAgainAfterAnError(t *testing.T) {
	t.Parallel()
	agentProgram(t, away, `[0, 0]
[1, 2, 4, 8, 16, 32, 64]
[128]
[200, 201, 203]
logging to server failed at the end: OSError: no answer
nothing was logged to server: memdiag found no open run while snapshots were taken (it sees those of server.open)
`)
}
