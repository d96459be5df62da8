package torch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// generate runs the shared tool that simulates a training run.
func generate(t testing.TB, args ...string) string {
	t.Helper()
	tool := sharedDir(t, "tools", "gen_torch_snapshots.py")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	dir := t.TempDir()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	out, err := exec.CommandContext(ctx, python, append([]string{tool, "--out", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// TestGeneratedSeriesHoldTheirTruth counts, in the last snapshot of a run that
// leaks, the blocks whose stack passes through the leaking line.
func TestGeneratedSeriesHoldTheirTruth(t *testing.T) {
	for _, c := range []struct{ leak, container, protocol string }{
		{"features", "pickle", "4"}, {"loss", "pickle", "2"}, {"graph", "json", "4"}, {"metric", "zip", "2"}, {"none", "pickle", "5"}, {"features", "pickle", "0"},
	} {
		t.Run(fmt.Sprintf("%s in %s of protocol %s", c.leak, c.container, c.protocol), func(t *testing.T) {
			dir := generate(t, "--steps", "20", "--every", "10", "--layers", "6", "--leak", c.leak, "--container", c.container, "--protocol", c.protocol)
			ending := map[string]string{"pickle": "pickle", "json": "json", "zip": "pt"}[c.container]
			var truth struct {
				Sites map[string]struct {
					Function      string
					Blocks, Bytes int64
				}
			}
			b, err := os.ReadFile(filepath.Join(dir, "truth.json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &truth); err != nil {
				t.Fatal(err)
			}
			s, err := decodeFile(t, filepath.Join(dir, "snapshot_20."+ending))
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Notes) != 0 {
				t.Errorf("notes: %q", s.Notes)
			}
			for at, want := range truth.Sites {
				count, bytes := liveAt(s, at, want.Function)
				if count != want.Blocks || int64(bytes) != want.Bytes {
					t.Errorf("%s: %d blocks of %d bytes, want %+v", at, count, bytes, want)
				}
			}
		})
	}
}

// liveAt counts the live blocks whose first user frame is FILE:LINE, without the
// optimizer's state, which the training loop's line allocates once.
func liveAt(s *snapshot.Snapshot, at, function string) (count int64, requested snapshot.Bytes) {
	for i, state := range s.Blocks.State {
		if state != snapshot.Live {
			continue
		}
		for _, f := range s.Stacks.Frames(s.Blocks.Stack[i]) {
			if f.Function == "_init_group" {
				break
			}
			if !isPython(f) || strings.Contains(f.File, "site-packages") || strings.HasPrefix(f.File, "/usr/lib/python") {
				continue
			}
			if f.Function == function && fmt.Sprintf("%s:%d", f.File, f.Line) == at {
				count++
				requested += s.Blocks.Requested[i]
			}
			break
		}
	}
	return count, requested
}
