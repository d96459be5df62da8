package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// roles finds readable names for the processes of a command: from their agent's report, the name that they gave themselves, their rank,
// or else program and script.
type roles struct {
	reports string // the path of an agent's report up to the PID
}

// trackers are the processes that multiprocessing and joblib run to clean up after their workers.
var trackers = regexp.MustCompile(`(multiprocessing|loky\.backend)\.resource_tracker`)

// loaderThread is the name that PyTorch gives to a loader worker.
const loaderThread = "pt_data_worker"

// of is the role of a process. If the process cannot be read, it is the program's name.
func (r *roles) of(t *tree, f *followed, p process) string {
	said, rankSaid := readRole(r.reports+strconv.Itoa(f.agent)+".json", f.first)
	environment, _ := os.ReadFile(procFile(p.pid, "environ"))
	f.rank = cmp.Or(rankIn(environment), rankSaid)
	parent := t.byPID(p.parent)
	rank := ""
	if f.rank != "" {
		rank = "rank " + f.rank
	}
	switch own := parent == nil || parent.rank != f.rank; {
	case said == "" && rank != "" && own:
		return rank
	case said == "":
		line, _ := os.ReadFile(procFile(p.pid, "cmdline"))
		said = roleOf(line, p.name, parent != nil && parent.name == p.name && sameCommand(line, p.parent))
		if strings.HasPrefix(said, "fork of ") || strings.HasPrefix(said, "spawned ") {
			if f.writer = f.writer || writesCheckpoint(procFolder, p.pid, p.parent); f.writer {
				said = "checkpoint writer"
			}
		}
	}
	if rank != "" {
		said += " of " + rank
	}
	return said
}

// checkpoint matches the file names that training programs use for checkpoints.
var checkpoint = regexp.MustCompile(`(?i)(^|[_.-])(checkpoint|ckpt)|\.(pt|pth|ckpt|safetensors|distcp)(\.tmp)?$`)

// mostOpen bounds how many descriptors of a process are checked.
const mostOpen = 256

// writesCheckpoint reports whether a process has a checkpoint open for writing that its parent does not have open.
func writesCheckpoint(proc string, pid, parent int) bool {
	written := checkpointsOf(proc, pid)
	if len(written) == 0 {
		return false
	}
	inherited := checkpointsOf(proc, parent)
	return slices.ContainsFunc(written, func(file string) bool { return !slices.Contains(inherited, file) })
}

// checkpointsOf lists the checkpoints that a process has open for writing.
func checkpointsOf(proc string, pid int) (files []string) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	f, err := os.Open(filepath.Join(dir, "fd"))
	if err != nil {
		return nil // it has ended, or is another user's
	}
	names, _ := f.Readdirnames(mostOpen) // what was read before an error is used
	_ = f.Close()
	for _, name := range names {
		to, err := os.Readlink(filepath.Join(dir, "fd", name))
		if err != nil || !checkpoint.MatchString(filepath.Base(to)) && !checkpoint.MatchString(filepath.Base(filepath.Dir(to))) {
			continue
		}
		for line := range strings.Lines(text(filepath.Join(dir, "fdinfo", name))) {
			if flags, ok := strings.CutPrefix(line, "flags:"); ok {
				if n, err := strconv.ParseUint(strings.TrimSpace(flags), 8, 64); err == nil && n&3 != uint64(os.O_RDONLY) {
					files = append(files, to)
				}
			}
		}
	}
	return files
}

// byPID is the known process with this PID, the newest one; nil for none.
func (t *tree) byPID(pid int) *followed {
	var found *followed
	for id, f := range t.known {
		if id.pid == pid && (found == nil || id.started > found.Started) {
			found = f
		}
	}
	return found
}

// readRole is the role of a process according to its agent, and its rank, which the program may have set itself, as Ray does; "" for
// unknown. seen is when the process was first seen: an older report is of an earlier process with the same PID.
func readRole(report string, seen time.Time) (role, rank string) {
	info, err := os.Lstat(report)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 || info.ModTime().Before(seen.Add(-3*time.Second)) {
		return "", ""
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return "", ""
	}
	var said struct {
		Role string `json:"role"`
		Rank *int   `json:"rank"`
	}
	_ = json.Unmarshal(text, &said) // on an error both stay empty
	if said.Rank != nil && *said.Rank >= 0 {
		rank = strconv.Itoa(*said.Rank)
	}
	return said.Role, rank
}

// rankIn is the rank in an environment, as set by torchrun; "" for none.
func rankIn(environment []byte) string {
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if rank, ok := bytes.CutPrefix(variable, []byte("RANK=")); ok {
			if n, err := strconv.ParseUint(string(rank), 10, 30); err == nil {
				return strconv.FormatUint(n, 10)
			}
		}
	}
	return ""
}

func sameCommand(line []byte, pid int) bool {
	other, err := os.ReadFile(procFile(pid, "cmdline"))
	return err == nil && bytes.Equal(line, other)
}

// roleOf is the role according to a command line and the program's name. A process that was forked and runs no other program has its
// parent's command line.
func roleOf(line []byte, name string, forked bool) string {
	words := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	program := path.Base(words[0])
	switch {
	case name == loaderThread:
		return "loader worker"
	case words[0] == "":
		return name // a kernel thread, or a process that is ending
	case len(words) == 1 && (strings.ContainsAny(words[0], " :") || strings.TrimRight(string(line), "\x00") != string(line) && bytes.HasSuffix(line, []byte{0, 0})):
		return title(words[0])
	case slices.Contains(words, "--multiprocessing-fork"):
		return "spawned " + program
	}
	role := program
	if isPython(program) || strings.HasPrefix(program, "pypy") {
		role = script(words[1:], program)
	}
	if forked {
		role = "fork of " + role
	}
	return role
}

// title is the role for a name that a process gave itself: "ray::Trainer.step()" becomes "ray::Trainer".
func title(text string) string {
	if actor, ok := strings.CutPrefix(text, "ray::"); ok {
		end := strings.IndexAny(actor, ".( ")
		if end > 0 {
			actor = actor[:end]
		}
		return "ray::" + actor
	}
	if !strings.Contains(text, " ") {
		return path.Base(text)
	}
	return text
}

// script is what Python runs: a file, a module, or a part of its own library.
func script(words []string, program string) string {
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case word == "-m" && i+1 < len(words):
			return words[i+1]
		case word == "-c" && i+1 < len(words):
			switch {
			case strings.Contains(words[i+1], "multiprocessing.forkserver"):
				return "fork server"
			case trackers.MatchString(words[i+1]):
				return "resource tracker"
			}
			return program + " -c"
		case word == "-W" || word == "-X":
			i++
		case !strings.HasPrefix(word, "-"):
			return path.Base(word)
		}
	}
	return program
}
