//go:build unix

package record_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot/files"
)

func TestAFullDiskEndsTheRecordingAndNothingElse(t *testing.T) {
	// The limit stands for the disk: the first snapshots fit, later ones do not.
	r := runOf(t, record.Options{Interval: 100 * time.Millisecond, PythonHeap: "on"},
		"sh", "-c", `ulimit -f 1; exec "$0" "$@"`, python(t), script(t, `
import time
kept = {}
for i in range(120):
    exec(compile("\n" * i + "kept[%d] = [bytearray(5000)]" % i, "file%d.py" % i, "exec"))
    time.sleep(0.01)
print("trained", len(kept))
`))
	if r.ExitCode != 0 || r.stdout != "trained 120\n" || r.stderr != "" {
		t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
	}
	if !r.noted("File too large") || !r.noted("recording stopped") {
		t.Errorf("notes: %q", r.Notes)
	}
	if _, err := files.OpenRun(r.dir); r.Snapshots > 0 && err != nil {
		t.Error(err)
	}
}

// smallDisk has the agent write to a disk that holds so many snapshots.
const smallDisk = `
import errno, glob, memdiag, os
agent = memdiag._running
write = agent.write
def full(name, text):
    if len(glob.glob(os.environ["RUN"] + "/snapshot_*.json")) >= %d:
        raise OSError(errno.ENOSPC, "full")
    write(name, text)
agent.write = full
for step in range(1, %d):
    memdiag.mark(step=step)
print("trained")
`

func TestOnAFullDiskThereAreFewerSnapshots(t *testing.T) {
	for _, c := range []struct {
		name               string
		room, steps, least int
		every              int64
		fewer, stopped     string
	}{
		{"every second one makes room for the next", 4, 120, 2, 0, "the disk was full", ""},
		{"two stay where there is no room for more", 2, 9, 2, 0, "", "the disk was full: recording stopped at step 3"},
		{"all stay that were asked for", 6, 60, 6, 1, "", "the disk was full: recording stopped at step 7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			t.Setenv("RUN", dir)
			r := runInto(t, dir, record.Options{Every: c.every}, python(t), script(t, fmt.Sprintf(smallDisk, c.room, c.steps)))
			if r.ExitCode != 0 || r.stdout != "trained\n" || r.stderr != "" || r.Snapshots < c.least || r.Snapshots > c.room {
				t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
			}
			if c.fewer != "" && !r.noted(c.fewer) || c.stopped != "" && !r.noted(c.stopped) || c.stopped == "" && r.noted("stopped") || r.noted("OSError") {
				t.Errorf("%q", r.Notes)
			}
		})
	}
}
