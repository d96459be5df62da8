package record

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed agent/sitecustomize.py agent/attach.py agent/memdiag/*.py agent/memdiag/py.typed
var agentFiles embed.FS

// agentSettings are passed to the agent in an environment variable. The run's folder has its own variable, since JSON cannot hold bytes
// that are not UTF-8.
type agentSettings struct {
	Report     string  `json:"report"` // how the names of its reports begin
	Rank       int     `json:"rank"`   // for a process that does not know its own
	Every      int64   `json:"every"`
	Seconds    float64 `json:"seconds"`
	PythonHeap string  `json:"python_heap,omitempty"`
	Canary     bool    `json:"canary,omitempty"`

	LogTo    []string `json:"log_to,omitempty"`
	Standing string   `json:"standing"` // the name of the file that WriteStanding writes

	Intervention *Intervention `json:"intervention,omitempty"`
	Experiment   bool          `json:"experiment,omitempty"`

	Agent   string  `json:"agent,omitempty"`   // the agent's folder: memdiag finds the command's processes by it
	Program string  `json:"program,omitempty"` // memdiag's own, which the Python package calls
	Begun   float64 `json:"begun"`             // when the command began, in seconds since 1970
}

const (
	settingsVariable = "MEMDIAG_AGENT"
	folderVariable   = "MEMDIAG_AGENT_DIR"
	pathVariable     = "PYTHONPATH"
)

// environ is the child's environment. The agent's folder comes first in PYTHONPATH. An empty variable means no folders to Python, but
// an empty item in it means the current folder. Without an agent, only another memdiag's variables are removed.
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

// placeAgent unpacks the agent into the folder of temporary files. If that has no room or its name cannot be in PYTHONPATH, it tries
// the run's folder, /tmp and /var/tmp. The path is absolute, since the command may change its working folder. If all fail, the first
// error is returned.
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

// unpackAgent writes the agent into a new folder below in.
func unpackAgent(in string) (dir string, err error) {
	dir, err = os.MkdirTemp(in, agentPrefix)
	if err == nil {
		var files fs.FS
		if files, err = fs.Sub(agentFiles, "agent"); err == nil {
			err = copyAgent(dir, files)
		}
	}
	if err != nil {
		_ = os.RemoveAll(dir) // the first error counts
		if reason, ok := errors.AsType[syscall.Errno](err); ok {
			err = reason // the user knows no file of the agent
		}
		return "", fmt.Errorf("%s: %w", in, err)
	}
	return dir, nil
}

const (
	agentPrefix = "memdiag-agent-"
	// leftFor is the least age of an agent that is swept away. Its processes may have overwritten their environment, or run in another
	// container, where memdiag cannot see that they use it.
	leftFor = 7 * 24 * time.Hour
)

// sweep removes agents of killed memdiags from a folder of temporary files, unless a process still has them in its environment.
func sweep(temporary string) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		return // no process can be checked
	}
	for _, name := range namesBeginning(temporary, agentPrefix) {
		agent := filepath.Join(temporary, name)
		if info, err := os.Lstat(agent); err == nil && time.Since(info.ModTime()) > leftFor && len(outlive(agent)) == 0 {
			_ = os.RemoveAll(agent) // another user's cannot be removed
		}
	}
}

// namesBeginning lists the names in a folder that begin with prefix; none if it cannot be read. It does not use filepath.Glob, because
// the folder's own name may contain any character.
func namesBeginning(dir, prefix string) (names []string) {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	all, _ := f.Readdirnames(-1) // what was read before an error is used
	_ = f.Close()                // it was only read
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, prefix) })
}
