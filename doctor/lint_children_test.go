package doctor

import (
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/doctor/source"
)

// TestLintKnowsWhatGrowsInAnotherProcess: the leak is of a loader's worker, and the run itself is clean.
func TestLintKnowsWhatGrowsInAnotherProcess(t *testing.T) {
	worker := program(t, list, 0, 0, even).Result
	at := worker.Findings[0].Rows[0].Frames[0]
	at.File = "/home/me/train.py"
	worker.Findings[0].Rows[0].Frames[0] = at
	run := *worker
	run.Findings, run.Children = nil, []*diff.Child{{Result: worker}}
	suspect := source.Suspect{Line: at.Line, End: at.Line}
	if got, text := measured(&run, at.File, suspect); got != Grows || text == "" {
		t.Errorf("%s, %q", got, text)
	}
	if files := ownFiles(&run); len(files) != 1 || files[0] != at.File {
		t.Errorf("%q", files)
	}
}
