package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// serving takes steps, and then keeps what it makes until there are so many snapshots by the clock; or until it steps again. What the
// recorder takes for a pause is short here, so that the test is.
const serving = `
import sys, time, torch
import memdiag
from memdiag import _ceased
_ceased.FLOOR = 0.3
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def train():
    for _ in range(8):
        model(torch.ones(4, 8)).mean().backward()
        optimizer.step()
train()
seen, until, agent = [], time.monotonic() + 60, memdiag._running
while time.monotonic() < until and (agent.ceased.after is None or agent.ticks < 24):
    seen.append(torch.randn(256))
    time.sleep(0.002)
if len(sys.argv) > 1:
    train()
`

// TestALeakAfterTheLastStepIsOne: a few steps, and then hours of a service that leaks, passed.
func TestALeakAfterTheLastStepIsOne(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "serving.py")
	if err := os.WriteFile(script, []byte(serving), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{false, true} {
		program := []string{torchPython(t), script}
		if again {
			heavytest.Skip(t, "a second training with PyTorch")
			program = append(program, "again")
		}
		r := recordProgram(t, []string{"record"}, program...)
		after, err := filepath.Glob(filepath.Join(r.dir, "snapshot_t*_after8.json"))
		if err != nil || again != (len(after) == 0) {
			t.Fatalf("%q, %v; again %t", after, err, again)
		}
		if again {
			continue
		}
		var said, errs bytes.Buffer
		code := run([]string{"gate", r.dir}, nil, &said, &errs)
		if text := said.String(); code != exitLeak || !strings.Contains(text, "/second allocated in serving.py after step 8 at ") || !strings.Contains(text, "serving.py:15") || !strings.Contains(text, "__main__.seen") {
			t.Errorf("exit code %d: %s%s", code, text, errs.String())
		}
	}
}
