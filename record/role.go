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

// roles tell what a person would call the processes of a command: by what an agent in them
// says, by the name that they gave themselves, by their rank, else by program and script.
type roles struct {
	reports string // the path of agents' reports, before their process's number
}

// trackers are what multiprocessing and joblib run to clean up after their workers.
var trackers = regexp.MustCompile(`(multiprocessing|loky\.backend)\.resource_tracker`)

// loaderThread is the name that PyTorch gives to a loader's worker.
const loaderThread = "pt_data_worker"

// of is the role of a process. What does not let itself be read leaves its program's name.
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

// checkpoint is a file's name as training programs give it to what they write to go on from.
var checkpoint = regexp.MustCompile(`(?i)(^|[_.-])(checkpoint|ckpt)|\.(pt|pth|ckpt|safetensors|distcp)(\.tmp)?$`)

// mostOpen bounds the descriptors that are looked at of a process.
const mostOpen = 256

// writesCheckpoint reports whether a process has a checkpoint open for writing, which it has not from its parent.
func writesCheckpoint(proc string, pid, parent int) bool {
	written := checkpointsOf(proc, pid)
	if len(written) == 0 {
		return false
	}
	inherited := checkpointsOf(proc, parent)
	return slices.ContainsFunc(written, func(file string) bool { return !slices.Contains(inherited, file) })
}

// checkpointsOf are the checkpoints that a process has open for writing.
func checkpointsOf(proc string, pid int) (files []string) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	f, err := os.Open(filepath.Join(dir, "fd"))
	if err != nil {
		return nil // it has ended, or is another user's
	}
	names, _ := f.Readdirnames(mostOpen) // what was read before an error counts
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

// byPID is the process of that number that is there; nil for none.
func (t *tree) byPID(pid int) *followed {
	var found *followed
	for id, f := range t.known {
		if id.pid == pid && (found == nil || id.started > found.Started) {
			found = f
		}
	}
	return found
}

// readRole is what an agent says of the role of its process, which was first seen at a time, and of its rank, which the
// program may have set by itself, as Ray does; "" for nothing. What is older is of a process that had its number before.
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
	_ = json.Unmarshal(text, &said) // there is neither then
	if said.Rank != nil && *said.Rank >= 0 {
		rank = strconv.Itoa(*said.Rank)
	}
	return said.Role, rank
}

// rankIn is the rank in an environment, as torchrun sets it; "" for none.
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

// roleOf is the role by a command line, of a program of that name. A process that was forked
// and runs no program of its own has its parent's line.
func roleOf(line []byte, name string, forked bool) string {
	words := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	program := path.Base(words[0])
	switch {
	case name == loaderThread:
		return "loader worker"
	case words[0] == "":
		return name // of the kernel, or it is ending
	case len(words) == 1 && (strings.ContainsAny(words[0], " :") || strings.TrimRight(string(line), "\x00") != string(line) && bytes.HasSuffix(line, []byte{0, 0})):
		return title(words[0])
	case slices.Contains(words, "--multiprocessing-fork"):
		return "spawned " + program
	}
	role := program
	if strings.HasPrefix(program, "python") || strings.HasPrefix(program, "pypy") {
		role = script(words[1:], program)
	}
	if forked {
		role = "fork of " + role
	}
	return role
}

// title is the role by a name that a process gave itself: "ray::Trainer.step()" is of a Trainer.
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
