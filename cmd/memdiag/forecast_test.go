package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// TestTheForecastCoversWhereMemoryRanOut trains until the device is full, and once
// more for half as many steps: what that run foretells must cover the step at which
// the other ended.
func TestTheForecastCoversWhereMemoryRanOut(t *testing.T) {
	if heavytest.Race {
		t.Skip("thousands of steps are trained, which takes long under the race detector")
	}
	for _, id := range []string{"L01", "L05", "L11", "L18"} {
		t.Run(id, func(t *testing.T) {
			if id != "L01" {
				heavytest.Skip(t, "it trains for thousands of steps")
			}
			t.Parallel()
			record := func(steps, every int64) (dir, said string, code int) {
				dir = filepath.Join(t.TempDir(), "run")
				var stdout, stderr bytes.Buffer
				code = run([]string{
					"record", "-w", id, "--seed", "4", "--limit", "4MiB", "-o", dir,
					"--steps", strconv.FormatInt(steps, 10), "--every", strconv.FormatInt(every, 10),
				}, nil, &stdout, &stderr)
				return dir, stderr.String(), code
			}
			_, said, code := record(50_000, 10_000)
			ended := regexp.MustCompile(`step (\d+): .*out of memory`).FindStringSubmatch(said)
			if code != exitOwn || ended == nil {
				t.Fatalf("exit code %d: %s", code, said)
			}
			truth, err := strconv.ParseInt(ended[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			dir, said, code := record(truth/2, max(1, truth/60))
			if code != exitFine {
				t.Fatalf("exit code %d: %s", code, said)
			}
			half, err := files.OpenRun(dir)
			if err != nil {
				t.Fatal(err)
			}
			r, err := analyze(half, diff.ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if r.Leaks() == 0 || r.Findings[0].RunsOut == nil {
				t.Fatalf("half of the run foretells nothing: %+v", r.Findings)
			}
			if f := r.Findings[0].RunsOut; truth < f.Low || truth > f.High {
				t.Errorf("memory ran out at step %d; foretold for %d, between %d and %d", truth, f.Step, f.Low, f.High)
			}
		})
	}
}
