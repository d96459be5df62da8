package record

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// orphans finds processes of a command whose parent ended before any look. They have the agent's folder in their environment. If the
// environment was replaced, they are known by the command's process group: they began after the command, and their parent is in another
// group.
type orphans struct {
	agent string          // "" to find none
	root  process         // the command itself; pid 0 if unknown
	seen  map[string]bool // the PIDs at the last look; each process is checked once
}

// look returns the PIDs that are new since the last look and belong to the command.
func (o *orphans) look(proc string) (pids []int) {
	if o.agent == "" {
		return nil
	}
	before := o.seen
	o.seen = make(map[string]bool, len(before))
	for _, name := range processNames(proc) {
		o.seen[name] = true
		if !before[name] && (hasAgent(filepath.Join(proc, name, "environ"), o.agent) || o.inGroup(proc, name)) {
			pid, _ := strconv.Atoi(name) // it is a number
			pids = append(pids, pid)
		}
	}
	return pids
}

// inGroup reports whether a process is an orphan in the command's process group.
func (o *orphans) inGroup(proc, name string) bool {
	p, ok := parseStat([]byte(text(filepath.Join(proc, name, "stat"))))
	if !ok || o.root.pid == 0 || p.group != o.root.group || p.started < o.root.started || p.pid == o.root.pid {
		return false
	}
	parent, ok := parseStat([]byte(text(filepath.Join(proc, strconv.Itoa(p.parent), "stat"))))
	return ok && parent.group != p.group
}

// processNames lists the PIDs in a folder such as /proc, as text.
func processNames(proc string) (names []string) {
	f, err := os.Open(proc)
	if err != nil {
		return nil // this system has no /proc
	}
	all, _ := f.Readdirnames(-1) // what was read before an error is used
	_ = f.Close()                // it was only read
	for _, name := range all {
		if _, err := strconv.Atoi(name); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// hasAgent reports whether an environment file contains an agent's folder, in PYTHONPATH or, if the program has replaced that, in the
// agent's settings. It is false for a process that has ended or belongs to another user.
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
		if len(text) == 0 || text[0] < '0' || text[0] > '9' { // a longer number is another memdiag's folder
			return true
		}
	}
}

// outlive lists the processes that have the agent's folder in their environment: the command has left them running.
func outlive(agent string) []int {
	o := orphans{agent: agent}
	return o.look(procFolder)
}
