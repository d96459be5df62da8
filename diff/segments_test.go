package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestSegmentsAreHeldByWhatHoldsTheirHandles has a line that makes segments of shared memory and, on the heap, their handles.
func TestSegmentsAreHeldByWhatHoldsTheirHandles(t *testing.T) {
	for _, c := range []struct {
		name, handles string
		findings      int
		holder        string
	}{
		{"one list", "[SharedMemory:115] share:7 main:2", 1, "share.<locals>.segments"},
		{"a list of what another line makes", "other:9 main:2", 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := program{
				{stack: "[SharedMemory:93] share:7 main:2", every: 1, size: 64 * snapshot.KiB},
				{stack: c.handles, every: 1, size: 512, holder: "share.<locals>.segments"},
			}.run(100, 10)
			for _, s := range run.Snapshots {
				shm := s.Devices[0]
				shm.Kind = snapshot.SharedMemory
				s.Devices[0].Kind = snapshot.PythonHeap
				s.Devices = append(s.Devices, shm)
				n := s.Blocks.Len() / 2 // they come first
				s.Segments = append(s.Segments, s.Segments[0])
				s.Segments[0].Device, s.Segments[0].NumBlocks = 1, n
				s.Segments[1].FirstBlock, s.Segments[1].NumBlocks = n, s.Blocks.Len()-n
				for i := n; i < s.Blocks.Len(); i++ {
					s.Blocks.Segment[i] = 1
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := &r.Findings[0]
			if len(r.Findings) != c.findings || f.Verdict != Leak || !ofSegments(f) {
				t.Fatalf("%d findings, the first of %s; want %d, of shared memory", len(r.Findings), f.Rows[0].Device.Kind, c.findings)
			}
			if held := ""; f.Holder != nil || c.holder != "" {
				if f.Holder != nil {
					held = f.Holder.Path
				}
				if held != c.holder {
					t.Errorf("held by %q, want %q", held, c.holder)
				}
			}
		})
	}
}
