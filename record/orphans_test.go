package record

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestAnOrphanIsKnownByTheAgentInItsEnvironment: each process is asked once.
func TestAnOrphanIsKnownByTheAgentInItsEnvironment(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	begin := func(pid, environ string) {
		if err := os.MkdirAll(filepath.Join(proc, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "environ"), []byte(environ), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begin("7", "A=1\x00PYTHONPATH=/tmp/memdiag-agent-12:/x\x00")
	begin("8", "PYTHONPATH=/x:/tmp/memdiag-agent-12")
	begin("9", "PYTHONPATH=/x\x00MEMDIAG_AGENT={\"agent\":\"/tmp/memdiag-agent-12\"}\x00")
	begin("10", "PYTHONPATH=/tmp/memdiag-agent-123\x00")
	begin("11", "A=1\x00")
	begin("self", "PYTHONPATH=/tmp/memdiag-agent-12\x00")
	o := orphans{agent: "/tmp/memdiag-agent-12"}
	found := o.look(proc)
	slices.Sort(found)
	if !slices.Equal(found, []int{7, 8, 9}) {
		t.Errorf("%v; want those with the agent's folder in their environment", found)
	}
	begin("12", "PYTHONPATH=/tmp/memdiag-agent-12\x00")
	if found := o.look(proc); !slices.Equal(found, []int{12}) {
		t.Errorf("%v; want the new one alone", found)
	}
	if err := os.RemoveAll(filepath.Join(proc, "7")); err != nil {
		t.Fatal(err)
	}
	o.look(proc)
	begin("7", "PYTHONPATH=/tmp/memdiag-agent-12\x00")
	if found := o.look(proc); !slices.Equal(found, []int{7}) {
		t.Errorf("%v; want the number that is used again", found)
	}
}

// TestAnOrphanWithAnEnvironmentOfItsOwnIsKnownByItsGroup: it passed the gate without a word.
func TestAnOrphanWithAnEnvironmentOfItsOwnIsKnownByItsGroup(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	for pid, stat := range map[string]string{ // parent, group, start
		"1": "0 1 0", "50": "1 50 90", // memdiag's shell
		"60": "50 50 100", "61": "60 50 110", // memdiag and the command
		"70": "1 50 120",  // an orphan
		"71": "1 50 80",   // … of before
		"72": "50 50 130", // the shell's next job
		"73": "1 73 130",  // of another group
	} {
		var parent, group, start int
		if _, err := fmt.Sscan(stat, &parent, &group, &start); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(proc, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s (python) S %d %d 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 9", pid, parent, group, start)
		if err := os.WriteFile(filepath.Join(proc, pid, "stat"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := orphans{agent: "/tmp/memdiag-agent-12", root: process{processID: processID{61, 110}, group: 50}}
	if found := o.look(proc); !slices.Equal(found, []int{70}) {
		t.Errorf("%v; want the orphan alone", found)
	}
}

func TestAProcessThatIsListedIsNotWalkedAgain(t *testing.T) {
	of := func(pid int) process { return process{processID: processID{pid: pid, started: 1}} }
	l := newListed([]process{of(1), of(2)})
	l.add(2, func(int) ([]process, int) {
		t.Error("it was")
		return nil, 0
	})
	l.add(3, func(int) ([]process, int) { return []process{of(3), of(2)}, 0 })
	if len(l.all) != 3 || l.all[2].pid != 3 {
		t.Errorf("%+v", l.all)
	}
}
