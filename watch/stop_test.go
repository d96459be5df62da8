//go:build unix

package watch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// begin runs a shell command that says a line once it is there, and returns it and that line.
func begin(t *testing.T, line string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line) //nolint:gosec // the test's own
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(said)
}

// process is one as a table has it.
func process(t *testing.T, pid int) snapshot.TreeProcess {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Skip(err)
	}
	started, err := strconv.ParseInt(strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[19], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.TreeProcess{PID: pid, Started: started, Points: []snapshot.ProcessPoint{{Recorded: true}}}
}

// ofRanks is a run of two ranks, the first of which has the table of all processes.
func ofRanks(t *testing.T, processes ...snapshot.TreeProcess) []*snapshot.Run {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	info := snapshot.Info{Host: host}
	return []*snapshot.Run{{Info: info, Tree: &snapshot.Tree{Processes: processes}}, {Info: info}}
}

const ignoresTerm = `trap "" TERM; echo there; while :; do sleep 0.1; done`

func TestARunOfRanksIsStopped(t *testing.T) {
	t.Parallel()
	stubborn, _ := begin(t, ignoresTerm)
	later, _ := begin(t, ignoresTerm)
	first, second := process(t, stubborn.Process.Pid), process(t, later.Process.Pid)
	judge := func(*snapshot.Run) (*diff.Result, error) {
		t.Error("the processes are killed only once ranks are judged")
		return nil, nil //nolint:nilnil // there is nothing to judge
	}
	f := &Follower{runs: ofRanks(t, first), Held: 1, Judge: judge, Open: func(each func(*snapshot.Run) error) error {
		for _, run := range ofRanks(t, first, second) {
			for range fewest {
				run.Snapshots = append(run.Snapshots, &snapshot.Snapshot{Blocks: snapshot.Blocks{Size: []snapshot.Bytes{1}}})
			}
			if err := each(run); err != nil {
				return err
			}
		}
		return nil
	}}
	if f.dead() {
		t.Error("it counts as dead")
	}
	if n, err := f.Stop(t.Context(), syscall.SIGTERM, 300*time.Millisecond); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for _, cmd := range []*exec.Cmd{stubborn, later} {
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Errorf("%v", err)
		}
	}
	if !f.dead() {
		t.Error("it does not count as dead")
	}
}

func TestWhoWaitsForTheEndMayLeave(t *testing.T) {
	t.Parallel()
	stubborn, _ := begin(t, ignoresTerm)
	f := &Follower{runs: ofRanks(t, process(t, stubborn.Process.Pid))}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if n, err := f.Stop(ctx, syscall.SIGTERM, time.Hour); n != 1 || !errors.Is(err, context.DeadlineExceeded) || f.dead() {
		t.Errorf("%d, %v, dead %v", n, err, f.dead())
	}
}

// TestACommandsChildrenEndWithIt: a shell that is killed leaves what it began.
func TestACommandsChildrenEndWithIt(t *testing.T) {
	t.Parallel()
	in, out := io.Pipe()
	d := NewDeliverer([]Receiver{Command{Line: "sleep 100 & echo $!; wait", Output: out}}, nil, func(string) {})
	d.Deliver(report.Live{Kind: report.LiveLeak, Run: &snapshot.Run{}, Rank: snapshot.NoRank}, report.Folder{})
	said, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(said))
	if err != nil {
		t.Fatal(err)
	}
	child := process(t, pid)
	d.Close(time.Millisecond)
	for end := time.Now().Add(30 * time.Second); alive(&child); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it goes on")
		}
	}
}
