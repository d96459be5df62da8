//go:build unix

package record_test

import "testing"

// TestAnAgentThatCannotStartHasSeenNothing: its report says so to whoever judges the run.
func TestAnAgentThatCannotStartHasSeenNothing(t *testing.T) {
	agentProgram(t, `
import json, os, sys, tempfile, types
import memdiag

folder = tempfile.mkdtemp()
os.environ["MEMDIAG_AGENT"], os.environ["MEMDIAG_AGENT_DIR"] = json.dumps({"report": "agent_"}), folder
sys.modules["memdiag._agent"] = types.ModuleType("memdiag._agent")
memdiag._start()
report, = os.listdir(folder)
with open(os.path.join(folder, report)) as f:
    unseen = json.load(f)["unseen"]
print(len(unseen), unseen[0]["what"].startswith("the agent did not start: ImportError"))
`, "1 True\n")
}
