package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestWhatEndsTheRunFirstComesFirst: a small leak where little memory is left, before a larger one where much is.
func TestWhatEndsTheRunFirstComesFirst(t *testing.T) {
	leaks := func(role string, pid int, blocks, left snapshot.Bytes) *snapshot.Run {
		run := workerRun(role, pid, true)
		for _, s := range run.Snapshots {
			for i := range s.Blocks.Size {
				s.Blocks.Size[i] *= blocks
				s.Blocks.Requested[i] *= blocks
			}
			s.Segments[0].Size *= blocks
			s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: left, Meters: snapshot.Meters{Driver: 1}})
		}
		return run
	}
	for name, c := range map[string]struct {
		own, small, large *snapshot.Run
		want              []string
	}{
		"by rate":      {leaks("main", 1, 2, 8*snapshot.GiB), leaks("small", 2, 1, 8*snapshot.GiB), leaks("large", 3, 4, 8*snapshot.GiB), []string{"large", "main", "small"}},
		"by what ends": {leaks("main", 1, 2, 8*snapshot.GiB), leaks("small", 2, 1, 1*snapshot.GiB), leaks("large", 3, 4, 80*snapshot.GiB), []string{"small", "main", "large"}},
		"no limit":     {leaks("main", 1, 2, 8*snapshot.GiB), leaks("small", 2, 1, snapshot.Unknown), leaks("large", 3, 4, snapshot.Unknown), []string{"main", "large", "small"}},
	} {
		run := c.own
		run.Children = []*snapshot.Run{c.small, c.large}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, of := range r.Drained() {
			got = append(got, of.Last.Role)
		}
		if len(got) != 3 || got[0] != c.want[0] || got[1] != c.want[1] || got[2] != c.want[2] {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}
