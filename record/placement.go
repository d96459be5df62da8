package record

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed agent/sitecustomize.py agent/attach.py agent/memdiag/*.py agent/memdiag/py.typed
var agentFiles embed.FS

// agentSettings are what the agent is given, in a variable; the run's folder has one of its
// own, since JSON has no bytes that are not UTF-8.
type agentSettings struct {
	Report     string  `json:"report"` // how the names of its reports begin
	Rank       int     `json:"rank"`   // of a process that does not know its own
	Every      int64   `json:"every"`
	Seconds    float64 `json:"seconds"`
	PythonHeap string  `json:"python_heap,omitempty"`
	Canary     bool    `json:"canary,omitempty"`

	LogTo    []string `json:"log_to,omitempty"`
	Standing string   `json:"standing"` // the name of WriteStanding's file

	Intervention *Intervention `json:"intervention,omitempty"`
	Experiment   bool          `json:"experiment,omitempty"`

	Agent   string  `json:"agent,omitempty"`   // its folder: who looks from outside knows the command's processes by it
	Program string  `json:"program,omitempty"` // memdiag's own, which the Python package calls
	Begun   float64 `json:"begun"`             // when the command began, in seconds since 1970
}

const (
	settingsVariable = "MEMDIAG_AGENT"
	folderVariable   = "MEMDIAG_AGENT_DIR"
	pathVariable     = "PYTHONPATH"
)

// environ is the child's environment: the agent's folder comes first where
// Python looks for modules. An empty variable is none to Python, while an empty
// item of it is the current folder. Without an agent the environment stays, but for what
// another memdiag has in it for its own.
func environ(env []string, agent, dir, settings string) []string {
	path := agent
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		if old, ok := strings.CutPrefix(v, pathVariable+"="); ok && agent != "" {
			if old != "" {
				path = agent + string(os.PathListSeparator) + old
			}
			return true
		}
		return strings.HasPrefix(v, settingsVariable+"=") || strings.HasPrefix(v, folderVariable+"=")
	})
	if agent == "" {
		return env
	}
	return append(env, pathVariable+"="+path, folderVariable+"="+dir, settingsVariable+"="+settings)
}

// placeAgent unpacks the agent among temporary files, or else, where there is no room for them
// or PYTHONPATH cannot name them, in the run's folder or where most systems have temporary
// files. The path is absolute: the command may change its folder. Where nothing serves, the
// error says why not.
func placeAgent(run string) (dir string, err error) {
	for _, in := range []string{os.TempDir(), run, "/tmp", "/var/tmp"} {
		path, failed := filepath.Abs(in)
		if failed == nil && strings.ContainsRune(path, os.PathListSeparator) {
			failed = fmt.Errorf("%s has a %q in its name, and %s uses that character to separate folders", path, os.PathListSeparator, pathVariable)
		}
		if failed == nil {
			dir, failed = unpackAgent(path)
		}
		if failed == nil {
			return dir, nil
		}
		err = cmp.Or(err, failed)
	}
	return "", err
}

// unpackAgent writes the agent into a new folder in one.
func unpackAgent(in string) (dir string, err error) {
	dir, err = os.MkdirTemp(in, agentPrefix)
	if err != nil {
		return "", err
	}
	files, err := fs.Sub(agentFiles, "agent")
	if err == nil {
		err = copyAgent(dir, files)
	}
	if err != nil {
		_ = os.RemoveAll(dir) // the first error counts
		return "", err
	}
	return dir, nil
}

const (
	agentPrefix = "memdiag-agent-"
	// leftFor is how old an agent must be to be swept away. A process may have written over its
	// environment, or be in another container, and only so long ones need their agent then.
	leftFor = 7 * 24 * time.Hour
)

// sweep removes agents from a folder of temporary files whose memdiag was killed, unless
// a process still has them in its environment.
func sweep(temporary string) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		return // of no process it is known
	}
	for _, name := range namesBeginning(temporary, agentPrefix) {
		agent := filepath.Join(temporary, name)
		if info, err := os.Lstat(agent); err == nil && time.Since(info.ModTime()) > leftFor && len(outlive(agent)) == 0 {
			_ = os.RemoveAll(agent) // another user's stays
		}
	}
}

// namesBeginning lists the names in a folder that begin so; none where it cannot be read.
// The folder's own name may hold any character, and so is no pattern for filepath.Glob.
func namesBeginning(dir, prefix string) (names []string) {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	all, _ := f.Readdirnames(-1) // what was read before an error counts
	_ = f.Close()                // it was only read
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, prefix) })
}
