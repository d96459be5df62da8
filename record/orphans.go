package record

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// orphans finds the processes of a command whose parents ended before any look: they have the agent's folder in their
// environment or, where that was set anew, began after the command in its process group, below a parent that is in another.
type orphans struct {
	agent string          // "" finds none
	root  process         // the command's own; none of number 0
	seen  map[string]bool // the numbers of processes at the last look; each is asked once
}

// look returns those that have begun since the last look, with others of the command.
func (o *orphans) look(proc string) (pids []int) {
	if o.agent == "" {
		return nil
	}
	before := o.seen
	o.seen = make(map[string]bool, len(before))
	for _, name := range processNames(proc) {
		o.seen[name] = true
		if !before[name] && (hasAgent(filepath.Join(proc, name, "environ"), o.agent) || o.inGroup(proc, name)) {
			pid, _ := strconv.Atoi(name) // it is one
			pids = append(pids, pid)
		}
	}
	return pids
}

// inGroup reports whether a process is one that the command left in its process group.
func (o *orphans) inGroup(proc, name string) bool {
	p, ok := parseStat([]byte(text(filepath.Join(proc, name, "stat"))))
	if !ok || o.root.pid == 0 || p.group != o.root.group || p.started < o.root.started || p.pid == o.root.pid {
		return false
	}
	parent, ok := parseStat([]byte(text(filepath.Join(proc, strconv.Itoa(p.parent), "stat"))))
	return ok && parent.group != p.group
}

// processNames are the processes of the machine, as /proc names them.
func processNames(proc string) (names []string) {
	f, err := os.Open(proc)
	if err != nil {
		return nil // of another system
	}
	all, _ := f.Readdirnames(-1) // what was read before an error counts
	_ = f.Close()                // it was only read
	for _, name := range all {
		if _, err := strconv.Atoi(name); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// hasAgent reports whether a file, the environment of a process, has an agent's folder in PYTHONPATH, or in the agent's settings if
// the program has replaced that. A process that has ended, or is another user's, has none.
func hasAgent(environ, agent string) bool {
	text, err := os.ReadFile(environ)
	if err != nil {
		return false
	}
	for {
		at := bytes.Index(text, []byte(agent))
		if at < 0 {
			return false
		}
		text = text[at+len(agent):]
		if len(text) == 0 || text[0] < '0' || text[0] > '9' { // else it is that of another memdiag
			return true
		}
	}
}

// outlive lists the processes that have the agent's folder in their environment: those
// that the command has started and left behind.
func outlive(agent string) []int {
	o := orphans{agent: agent}
	return o.look(procFolder)
}
