package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestFilesOfSharedMemoryAreTheirsWhoWroteAsMuch: files that were written and closed are no process's memory.
func TestFilesOfSharedMemoryAreTheirsWhoWroteAsMuch(t *testing.T) {
	flat := func(float64) float64 { return 50 }
	for _, c := range []struct {
		name  string
		wrote map[string]snapshot.Bytes // MiB a second
		want  string
	}{
		{"one worker", map[string]snapshot.Bytes{"dump 1": 2, "dump 2": 0}, "dump 1"},
		{"two alike", map[string]snapshot.Bytes{"dump 1": 1, "dump 2": 1}, "dump"},
		{"beside one that logs, and one that writes to disk", map[string]snapshot.Bytes{"train.py": 6, "dump 1": 2, "logger": 0}, "dump 1"},
		{"one of two that wrote as much", map[string]snapshot.Bytes{"dump 1": 2, "logger": 2, "train.py": 2}, "dump 1"},
		{"nobody is known", map[string]snapshot.Bytes{"train.py": 60}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lifetimes []lifetime
			for _, role := range []string{"train.py", "dump 1", "dump 2", "logger"} {
				lifetimes = append(lifetimes, lifetime{role, 0, 30, flat})
			}
			tree := treeOf(lifetimes...)
			for i := range tree.Processes {
				p := &tree.Processes[i]
				for k := range p.Points {
					p.Points[k].Written = snapshot.Unknown
					if k > 0 { // asked once there are files
						p.Points[k].Written = c.wrote[p.Role]*snapshot.Bytes(k)<<20 + 5
					}
				}
			}
			for i, at := range tree.Processes[0].Points {
				tree.Host = append(tree.Host, snapshot.HostPoint{Time: at.Time, Segments: int64(i), SegmentBytes: snapshot.Bytes(i) * 2 << 20, Folder: "/dev/shm/cache"})
			}
			r, err := Analyze(flatRun(tree), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			got := r.Unaccounted()
			if len(got) != 1 || got[0].Processes.Writer != c.want {
				t.Fatalf("%+v; want %q", got, c.want)
			}
			clause := "shared memory grows, +4.00 MiB/s, in up to 60 files in /dev/shm/cache"
			if c.want != "" {
				clause += ", likely written by " + c.want
			}
			if got[0].Clause() != clause {
				t.Errorf("%q; want %q", got[0].Clause(), clause)
			}
		})
	}
}
