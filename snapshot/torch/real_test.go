package torch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// sharedDir finds a folder beside the repository that tests may read. Without
// it a test skips, except in CI, where the folder must be there.
func sharedDir(t testing.TB, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{"..", "..", "..", "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI needs the shared data: %v", err)
		}
		t.Skipf("no shared data: %v", err)
	}
	return path
}

func decodeFile(t testing.TB, path string) (*snapshot.Snapshot, error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return Decode(filepath.Base(path), f, info.Size(), Options{})
}

// TestRealFiles holds the totals of recorded files against their README.
func TestRealFiles(t *testing.T) {
	dir := sharedDir(t, "data", "torch")
	for _, c := range []struct {
		name                     string
		segments, blocks, active int
		events                   int64
		step                     int64
	}{
		{"wedsonlin_medium_1024_training.pickle", 234, 1031, 885, 22331, 1},
		{"wedsonlin_medium_128_training.pickle", 377, 918, 885, 19136, 1},
		{"wedsonlin_medium_512_inference.pickle", 101, 233, 223, 4998, -1},
		{"wedsonlin_medium_256_inference.pickle", 101, 232, 223, 3840, -1},
		{"cpppickler_from_wedsonlin_512_inference.pickle", 101, 233, 223, 4998, -1},
		{"cs336_kk_ctx128_fullstep.pickle", 1010, 1525, 1201, 19342, 1},
		{"cs336_kk_ctx128_fullstep_.pickle", 1010, 1525, 1201, 19770, 1},
		{"cs336_kk_ctx128_forward.pickle", 405, 1006, 969, 8227, -1},
		{"yiyi_1.3b_1.pickle", 112, 593, 541, 1, -1},
		{"yiyi_1.3b_2.pickle", 257, 948, 785, 1, -1},
		{"yiyi_oom_snapshot.pickle", 176, 463, 460, 1, -1},
		{"muduard_dump_2.pickle", 673, 6644, 6240, 2, -1},
		{"muduard_memory_snapshot.pkl", 255, 2140, 1938, 0, -1},
		{"selectn_a.pickle", 82, 415, 400, 4496, -1},
		{"mosaic_output.pickle", 5, 17, 17, 1040, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := decodeFile(t, filepath.Join(dir, c.name))
			if err != nil {
				t.Fatal(err)
			}
			active := 0
			for _, state := range s.Blocks.State {
				if state != snapshot.Free {
					active++
				}
			}
			if len(s.Segments) != c.segments || s.Blocks.Len() != c.blocks || active != c.active || s.History.Events != c.events || s.Mark.Step != c.step {
				t.Errorf("got %d segments, %d blocks (%d active), %d events, step %d, want %+v",
					len(s.Segments), s.Blocks.Len(), active, s.History.Events, s.Mark.Step, c)
			}
			t.Logf("%d stacks, %d frames; %s", s.Stacks.Len(), s.Stacks.NumFrames(), strings.Join(s.Notes, "\n"))
		})
	}
}

// TestTheTimelineOfARealFileHasItsPeak: as the replay that --at peak makes tells it.
func TestTheTimelineOfARealFileHasItsPeak(t *testing.T) {
	dir := sharedDir(t, "data", "torch")
	for _, name := range []string{"wedsonlin_medium_1024_training.pickle", "wedsonlin_medium_512_inference.pickle", "cs336_kk_ctx128_fullstep.pickle", "cs336_kk_ctx128_forward.pickle", "mosaic_output.pickle"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			s, err := Decode(name, bytes.NewReader(text), int64(len(text)), Options{At: snapshot.At{Kind: snapshot.AtPeak}})
			if err != nil {
				t.Fatal(err)
			}
			var peak snapshot.Bytes
			for row, state := range s.Blocks.State {
				if state != snapshot.Free {
					peak += s.Blocks.Requested[row]
				}
			}
			line := timelineOf(t, text)
			if line.Peak != peak || line.PeakEvent != s.Moment.Event {
				t.Errorf("%d bytes at event %d, want %d at %d", line.Peak, line.PeakEvent, peak, s.Moment.Event)
			}
		})
	}
}
