package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/memdiag/memdiag/record/recordtest"
)

// TestGuiltyLineOfGeneratedSeriesIsFirst holds diff against the truth that the
// generator of PyTorch snapshots writes beside them.
func TestGuiltyLineOfGeneratedSeriesIsFirst(t *testing.T) {
	generator := shared(t, "tools/gen_torch_snapshots.py")
	dir := t.TempDir()
	if out, err := recordtest.Command(t, "python3", generator, "--out", dir, "--leak", "features", "--steps", "60", "--every", "30", "--vary").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var truth struct {
		Sites map[string]struct{ Blocks, Bytes int64 }
	}
	if err := json.Unmarshal(text, &truth); err != nil {
		t.Fatal(err)
	}
	want, ok := truth.Sites["fpn.py:88"]
	if !ok || len(truth.Sites) != 1 {
		t.Fatalf("the generator leaks at %v", truth.Sites)
	}
	for _, args := range [][]string{
		{"diff", dir},
		{"diff", filepath.Join(dir, "snapshot_0"), filepath.Join(dir, "snapshot_60")},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(append(args, "--format", "json"), nil, &stdout, &stderr); code != exitFine {
			t.Fatalf("%v: exit code %d: %s", args, code, &stderr)
		}
		var got struct {
			Findings []struct {
				Verdict  string
				Headline struct {
					File string
					Line int
				}
				Growth struct {
					Blocks    int64
					Requested int64 `json:"requested_bytes"`
				}
			}
		}
		if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Findings) == 0 {
			t.Fatalf("%v: nothing found", args)
		}
		first := got.Findings[0]
		if at := fmt.Sprintf("%s:%d", first.Headline.File, first.Headline.Line); at != "fpn.py:88" || first.Verdict != "leak" {
			t.Errorf("%v: first is a %s at %s", args, first.Verdict, at)
		}
		if first.Growth.Blocks != want.Blocks || first.Growth.Requested != want.Bytes {
			t.Errorf("%v: %d blocks, %d bytes; the truth is %d, %d", args, first.Growth.Blocks, first.Growth.Requested, want.Blocks, want.Bytes)
		}
	}
}

// TestRecordedSnapshotsAreShown reads every real file that is at hand.
func TestRecordedSnapshotsAreShown(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared(t, "data/torch"), "*.p*kl*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded snapshots: %v", err)
	}
	for _, f := range files {
		for _, args := range [][]string{{"show", f}, {"diff", f, files[0]}} {
			var stdout, stderr bytes.Buffer
			if code := run(args, nil, &stdout, &stderr); code != exitFine || stdout.Len() == 0 {
				t.Errorf("%v: exit code %d, %d bytes: %s", args, code, stdout.Len(), &stderr)
			}
		}
	}
}

// shared is a path in the folder beside the repository, which CI has and a
// clone of a user has not.
func shared(t *testing.T, path string) string {
	t.Helper()
	full := filepath.Join("..", "..", "..", "shared", path)
	if _, err := os.Stat(full); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI lacks it: %v", err)
		}
		t.Skipf("not here: %v", err)
	}
	return full
}
