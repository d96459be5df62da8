package report

import (
	"bytes"
	"io"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// TestAResultTellsTheSameWithoutTheBlocksBetween: of a run of many ranks only the first and the last snapshots of each keep them.
func TestAResultTellsTheSameWithoutTheBlocksBetween(t *testing.T) {
	run, child := manyLeaks(t).Run(), pyramid()
	child.Role = "loader worker 0"
	run.Children = []*snapshot.Run{child}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	all := func() string {
		var b bytes.Buffer
		for _, write := range []func(io.Writer) error{
			func(w io.Writer) error { return Text(w, r, TextOptions{}) },
			func(w io.Writer) error { return JSON(w, r) },
			func(w io.Writer) error { return Markdown(w, r, TextOptions{}) },
			func(w io.Writer) error { return Page(w, r, About{}) },
			func(w io.Writer) error { return CSV(w, r) },
			func(w io.Writer) error { return Plot(w, SVG, r, PlotOptions{}) },
			func(w io.Writer) error { return Sheet(w, SVG, r, PlotOptions{}) },
		} {
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	before := all()
	r.Shed()
	for i, s := range run.Snapshots {
		if between := i > 0 && i < len(run.Snapshots)-1; (s.Blocks.Len() == 0) != between {
			t.Errorf("snapshot %d has %d blocks", i, s.Blocks.Len())
		}
	}
	if all() != before {
		t.Error("something else is told")
	}
}
