//go:build unix

package rundir

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
)

// TestMain plays the process that is killed or meets a limit, when a test
// starts it so.
func TestMain(m *testing.M) {
	switch dir := os.Getenv("RUNDIR_TEST_DIR"); os.Getenv("RUNDIR_TEST_PART") {
	case "endless":
		fmt.Println(recordSteps(dir, 1<<40))
	case "limited":
		signal.Ignore(syscall.SIGXFSZ)
		limit := &syscall.Rlimit{Cur: 20_000, Max: 20_000}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, limit); err != nil {
			panic(err)
		}
		fmt.Println(recordSteps(dir, 1<<40))
	default:
		os.Exit(m.Run())
	}
}

// recordSteps records a point at each step and a growing snapshot at every
// fifth, and prints the step after that.
func recordSteps(dir string, steps int64) error {
	w, err := Create(dir, snapshot.Info{Workload: "test"})
	if err != nil {
		return err
	}
	log, err := w.OpenSeries(make([]snapshot.Device, 1))
	if err != nil {
		return err
	}
	noise := uint64(1)
	var notes []string
	for step := range steps {
		p := snapshot.Point{Mark: snapshot.Mark{Step: step}, Meters: []snapshot.Meters{{Allocated: snapshot.Bytes(step)}}}
		if err := log.AppendPoint(p); err != nil {
			return err
		}
		noise = noise*6364136223846793005 + 1442695040888963407
		notes = append(notes, fmt.Sprint(noise))
		if step%5 == 0 {
			if err := w.WriteSnapshot(step, &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}, Notes: notes}); err != nil {
				return err
			}
		}
		fmt.Println("step", step)
	}
	return nil
}

// play starts the part in a process of its own.
func play(t *testing.T, part, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(stop)
	c := exec.CommandContext(ctx, self)
	c.Env = append(os.Environ(), "RUNDIR_TEST_PART="+part, "RUNDIR_TEST_DIR="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewScanner(out)
}

// recorded checks that all that is there is whole, and returns how many points
// and snapshots there are.
func recorded(t *testing.T, dir string) (points, snapshots int64) {
	t.Helper()
	for name, text := range content(t, dir) {
		r := strings.NewReader(text)
		switch {
		case name == SeriesName:
			s, _, err := native.DecodeSeries(name, r, int64(len(text)))
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range s.Points {
				if p.Mark.Step != int64(i) || p.Meters[0].Allocated != snapshot.Bytes(i) {
					t.Fatalf("point %d: %+v", i, p)
				}
			}
			points = int64(len(s.Points))
		case name == InfoName:
			info(t, dir)
		case strings.HasPrefix(name, "."):
			// What was being written when the process was killed.
		default:
			s, err := native.Decode(name, r, int64(len(text)), nil)
			if err != nil {
				t.Fatal(err)
			}
			if SnapshotName(s.Mark.Step) != name || int64(len(s.Notes)) != s.Mark.Step+1 {
				t.Errorf("%s has step %d and %d notes", name, s.Mark.Step, len(s.Notes))
			}
			snapshots++
		}
	}
	return points, snapshots
}

func TestAKilledRunKeepsEveryStepBefore(t *testing.T) {
	for _, steps := range []int64{0, 3, 26} {
		dir := filepath.Join(t.TempDir(), "run")
		c, lines := play(t, "endless", dir)
		for last := fmt.Sprint("step ", steps); lines.Scan() && lines.Text() != last; {
		}
		if err := c.Process.Kill(); err != nil { // SIGKILL
			t.Fatal(err)
		}
		_ = c.Wait() // it was killed
		points, snapshots := recorded(t, dir)
		if points <= steps || snapshots <= steps/5 {
			t.Errorf("after step %d: %d points, %d snapshots", steps, points, snapshots)
		}
	}
}

func TestALimitOfTheSystemEndsTheRecordingAndLosesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	c, lines := play(t, "limited", dir)
	var out bytes.Buffer
	steps := int64(0)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "step ") {
			out.WriteString(lines.Text())
			continue
		}
		steps++
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), syscall.EFBIG.Error()) {
		t.Errorf("the process said %q", out.String())
	}
	points, snapshots := recorded(t, dir)
	if points < steps || snapshots < steps/5 || steps == 0 {
		t.Errorf("after %d steps: %d points, %d snapshots", steps, points, snapshots)
	}
	for name := range content(t, dir) {
		if strings.HasPrefix(name, ".") {
			t.Errorf("%s was left behind", name)
		}
	}
}
