package diff

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestWhatMayLoadAllAlongIsNoLeak looks at processes in which nothing was recorded, and at one of the program's own lines, in a
// short run and in a longer one.
func TestWhatMayLoadAllAlongIsNoLeak(t *testing.T) {
	for _, c := range []struct {
		name    string
		device  snapshot.Device
		seconds float64
		want    Verdict
	}{
		{"processes for 20 s", snapshot.Device{Kind: snapshot.Process, Name: snapshot.WatchedProcesses}, 20, Inconclusive},
		{"processes for 60 s", snapshot.Device{Kind: snapshot.Process, Name: snapshot.WatchedProcesses}, 60, Leak},
		{"a recorded line for 20 s", snapshot.Device{Kind: snapshot.CPU}, 20, Leak},
	} {
		t.Run(c.name, func(t *testing.T) {
			var at []float64
			for i := range 20 {
				at = append(at, float64(i+1)*c.seconds/20)
			}
			run := clocked(at, func(x float64) int { return int(100 * x) })
			for _, s := range run.Snapshots {
				s.Devices[0].Kind, s.Devices[0].Name = c.device.Kind, c.device.Name
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != c.want || (c.want == Inconclusive) != strings.Contains(strings.Join(f.Reasons, "; "), "may load their data for 30 s") {
				t.Errorf("%s: %v", f.Verdict, f.Reasons)
			}
		})
	}
}
