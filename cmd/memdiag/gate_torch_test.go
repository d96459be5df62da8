package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// sixty keeps a number a step for 60 steps, which docs/gate.md says are enough.
const sixty = `
import torch
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for _ in range(60):
    loss = model(torch.ones(4, 8)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
`

func TestSixtyStepsOfPyTorchShowABlockAStep(t *testing.T) {
	heavytest.Skip(t, "one of several trainings with PyTorch")
	t.Parallel()
	script := filepath.Join(t.TempDir(), "sixty.py")
	if err := os.WriteFile(script, []byte(sixty), 0o666); err != nil {
		t.Fatal(err)
	}
	r := recordProgram(t, []string{"gate", "--every", "5"}, torchPython(t), script)
	if r.code != exitLeak || !strings.Contains(r.stdout, "sixty.py:7") {
		t.Errorf("exit code %d: %s", r.code, r.stdout)
	}
}

func TestGateOfTrainingWithPyTorch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		code         int
		want         string // a line of it begins so
	}{
		{"a leak fails", "leak_metrics.py", exitLeak, "1 leak: "},
		{"a canary is caught in what is clean", "clean_plain.py", exitFine, "canary: caught: +5"},
		{"a command that fails is not judged", "clean_exit7.py", exitOwn, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.code != exitLeak {
				heavytest.Skip(t, "one of several trainings with PyTorch")
			}
			t.Parallel()
			r := recordProgram(t, []string{"gate", "--canary", "--every", "10"}, torchPython(t), "../../testdata/scripts/"+c.script)
			if r.code != c.code || !strings.Contains("\n"+r.stdout, "\n"+c.want) {
				t.Errorf("exit code %d, want %d with %q: %s", r.code, c.code, c.want, r.stdout)
			}
		})
	}
}
