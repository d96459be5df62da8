package files_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
)

// TestSnapshotsOfAnH200 reads what memdiag recorded of bench/gpu/features with PyTorch 2.11: streams, a captured graph's
// pool, and a rank with NCCL. The figures are CPython's, of the unpickled files. Our own dispatch mode is no call site.
func TestSnapshotsOfAnH200(t *testing.T) {
	for _, c := range []struct {
		name                     string
		segments, blocks, live   int
		bytes, reserved, driver  snapshot.Bytes
		events, step, rank, nccl int64
	}{
		{"h200_streams.pickle", 6, 34, 22, 85740032, 113246208, 895483904, 325, 4, snapshot.NoRank, 0},
		{"h200_graph.pickle", 8, 27, 19, 136605696, 142606336, 924844032, 170, 4, snapshot.NoRank, 0},
		{"h200_nccl.pickle", 4, 23, 17, 69471744, 71303168, 1365245952, 190, 8, 0, 64356},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := files.Open(filepath.Join("testdata", c.name))
			if err != nil {
				t.Fatal(err)
			}
			segments, blocks, live := 0, 0, 0
			for _, segment := range s.Segments {
				if s.Devices[segment.Device].Kind != "cuda" {
					continue
				}
				segments++
				for row := segment.FirstBlock; row < segment.FirstBlock+segment.NumBlocks; row++ {
					blocks++
					if s.Blocks.State[row] == snapshot.Live {
						live++
					}
					for _, f := range s.Stacks.Frames(s.Blocks.Stack[row]) {
						if strings.HasSuffix(f.File, "/_mode.py") {
							t.Errorf("%s:%d is on a stack", f.File, f.Line)
						}
					}
				}
			}
			d := s.Devices[0]
			if segments != c.segments || blocks != c.blocks || live != c.live || s.History.Events != c.events || s.Mark.Step != c.step || int64(s.Rank) != c.rank ||
				d.Meters.Allocated != c.bytes || d.Meters.Reserved != c.reserved || d.Meters.Driver != c.driver || int64(d.NCCL) != c.nccl {
				t.Errorf("got %d segments, %d blocks (%d live), %d events, step %d, rank %d, %+v, want %+v",
					segments, blocks, live, s.History.Events, s.Mark.Step, s.Rank, d, c)
			}
		})
	}
}
