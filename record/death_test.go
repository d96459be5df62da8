package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

func TestWhoKilledACommandIsSaid(t *testing.T) {
	most := &followed{TreeProcess: snapshot.TreeProcess{Role: "loader worker 3", Points: []snapshot.ProcessPoint{{Anonymous: 93 << 30}}}}
	before := kills{group: 1, machine: 5, limit: 400 << 30}
	none := kills{group: -1, machine: -1, limit: snapshot.Unknown}
	for _, c := range []struct {
		before, now kills
		code        int
		want        string
	}{
		{before, kills{2, 6, 400 << 30}, 137, "the kernel killed a process: the limit of 400 GiB of the control group was reached; loader worker 3 held most, 93.0 GiB"},
		{before, kills{2, 6, 400 << 30}, 1, "the kernel killed a process: the limit of 400 GiB of the control group was reached; loader worker 3 held most, 93.0 GiB"},
		{kills{1, 5, snapshot.Unknown}, kills{1, 6, snapshot.Unknown}, 137, "the kernel killed a process: the machine had no memory left; loader worker 3 held most, 93.0 GiB"},
		{before, kills{-1, 6, snapshot.Unknown}, 137, "the kernel killed a process: the limit of 400 GiB of its control group, which is gone, was reached, or the machine had no memory left; loader worker 3 held most, 93.0 GiB"},
		{before, kills{1, 6, 400 << 30}, 0, ""}, // of another command
		{before, before, 137, "another process sent the signal that killed it; the kernel did not kill it for lack of memory"},
		{before, before, 143, ""},
		{none, none, 137, ""},
	} {
		if got, kernel := c.before.since(c.now, c.code, most); got != c.want || kernel != strings.HasPrefix(c.want, "the kernel") {
			t.Errorf("%+v to %+v, %d: %q; want %q", c.before, c.now, c.code, got, c.want)
		}
	}
}

// TestADyingCommandIsInNoOtherGroup: of one that exits the first version of control groups shows the top.
func TestADyingCommandIsInNoOtherGroup(t *testing.T) {
	proc, groups := t.TempDir(), t.TempDir()
	put := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, group := range []string{"memory", "memory/job"} {
		put(filepath.Join(groups, group, "memory.usage_in_bytes"), "1\n")
		put(filepath.Join(groups, group, "memory.oom_control"), "oom_kill 3\n")
	}
	line := filepath.Join(proc, "7", "cgroup")
	put(line, "4:memory:/job\n")
	var d deaths
	d.look(proc, groups, 7)
	d.first.machine = 5 // before the kill
	put(line, "4:memory:/\n")
	d.look(proc, groups, 7)
	if want := filepath.Join(groups, "memory", "job"); d.group.dir != want || d.first.machine != 5 {
		t.Errorf("%s, %d; want %s, 5", d.group.dir, d.first.machine, want)
	}
}

// TestAKillIsTheCommandsIfOneOfItsProcessesEndsSoon: another job may be in its control group, and run out of memory.
func TestAKillIsTheCommandsIfOneOfItsProcessesEndsSoon(t *testing.T) {
	began := time.Unix(1000, 0)
	process := func(pid int, gib snapshot.Bytes) *followed {
		return &followed{first: began, begun: 1 << 30, TreeProcess: snapshot.TreeProcess{PID: pid, Role: "loader worker 3", Points: []snapshot.ProcessPoint{{Time: began.Add(40 * time.Second), Anonymous: gib << 30}}}}
	}
	main, worker := process(7, 1), process(8, 93)
	for _, c := range []struct {
		name  string
		ends  int // seconds after the kill; 0 for never
		want  bool
		group int64 // kills that are none of the command's
	}{{"at once", 1, true, 1}, {"as it gives back what it has", 4, true, 1}, {"none", 0, false, 2}, {"long after", 9, false, 2}} {
		d := deaths{first: kills{1, 5, 400 << 30}, last: kills{1, 5, 400 << 30}}
		for second := range 20 {
			now, counted := began.Add(time.Duration(second)*time.Second), kills{1, 5, 400 << 30}
			all := []*followed{main, worker}
			if second >= 8 {
				counted = kills{2, 6, 400 << 30}
			}
			if c.ends > 0 && second >= 7+c.ends {
				all = all[:1]
			}
			d.see(now, counted, all)
		}
		if (d.victim == worker) != c.want || d.first.group != c.group {
			t.Errorf("%s: victim %v, %d kills of others", c.name, d.victim, d.first.group)
		}
		if c.want {
			said, kernel := d.first.since(kills{2, 6, 400 << 30}, 0, d.victim)
			if want := "the kernel killed a process: the limit of 400 GiB of the control group was reached; loader worker 3 held most, 93.0 GiB, 92.0 GiB more than 40s before"; said != want || !kernel {
				t.Errorf("%s; want %s", said, want)
			}
		}
	}
}

// TestAnOldKillOnTheMachineHasNotEndedTheCommand: another process was killed long before a signal from elsewhere.
func TestAnOldKillOnTheMachineHasNotEndedTheCommand(t *testing.T) {
	began := time.Unix(1000, 0)
	d := deaths{first: kills{-1, 5, snapshot.Unknown}, last: kills{-1, 5, snapshot.Unknown}}
	for second := range 30 {
		machine := int64(5)
		if second > 3 {
			machine = 6
		}
		d.see(began.Add(time.Duration(second)*time.Second), kills{-1, machine, snapshot.Unknown}, []*followed{{TreeProcess: snapshot.TreeProcess{PID: 7, Points: []snapshot.ProcessPoint{{}}}}})
	}
	if said, kernel := d.first.since(kills{-1, 6, snapshot.Unknown}, killedCode, nil); kernel {
		t.Error(said)
	}
}
