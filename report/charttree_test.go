package report

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// inTree is a run in which a loader worker holds what is asked for at each second, and another process as much as the main one.
func inTree(t *testing.T, worker func(second int) snapshot.Bytes) *diff.Result {
	tree := &snapshot.Tree{}
	for pid, role := range []string{"train.py", "loader worker 0", "loader worker 1"} {
		p := snapshot.TreeProcess{PID: pid, Role: role}
		for s := range 40 {
			at := snapshot.ProcessPoint{Time: time.Unix(int64(s), 0), Recorded: pid == 0, Anonymous: 100 * snapshot.MiB}
			if pid == 1 {
				at.Anonymous = worker(s)
			}
			p.Points = append(p.Points, at)
		}
		tree.Processes = append(tree.Processes, p)
	}
	run := &snapshot.Run{Tree: tree}
	for step := range int64(8) {
		s := newSnapshot(snapshot.NewStacks(), 10*step, snapshot.Unknown).done()
		s.Devices = []snapshot.Device{{Kind: snapshot.Process, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: 1 << 20}}}
		run.Snapshots = append(run.Snapshots, s)
	}
	return analyzed(t, run)
}

func TestProcessesAreTheFirstPictureIfTheTitleIsAboutThem(t *testing.T) {
	grows := inTree(t, func(s int) snapshot.Bytes { return snapshot.Bytes(100+10*s) * snapshot.MiB })
	views, data := chartViews(grows)
	if !strings.Contains(Headline(grows), "loader worker 0 grows, +10.0 MiB/s") || len(views) != 2 || !strings.HasPrefix(views[0].About, "private memory of all processes by role") {
		t.Fatalf("%s; %+v", Headline(grows), views)
	}
	if b := data[0].Bands; len(b) != 3 || b[1].Name != "loader worker 0" || b[1].Note != "grows: +10.0 MiB/second" || b[0].Name != "train.py" {
		t.Errorf("%+v", b)
	}
	if c := newTreeChart(grows, PlotOptions{}, 10); len(c.x) != 10 || c.title != Headline(grows) {
		t.Errorf("%+v", c)
	}

	flat := inTree(t, func(int) snapshot.Bytes { return 100 * snapshot.MiB })
	views, data = chartViews(flat)
	if len(views) != 2 || !strings.HasPrefix(views[0].About, "memory of host:0") || len(data[1].Bands) != 2 || data[1].Bands[1].Name != "loader worker × 2" {
		t.Errorf("%+v; %+v", views, data)
	}
	alone := inTree(t, func(int) snapshot.Bytes { return 0 })
	alone.Run().Tree.Processes = alone.Run().Tree.Processes[:1]
	if err := Plot(io.Discard, SVG, alone, PlotOptions{Stack: StackRoles}); err == nil || !strings.Contains(err.Error(), "no second process") {
		t.Errorf("%v", err)
	}
}
