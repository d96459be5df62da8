package record

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// RunOf is the folder into which memdiag records a process. The process is one that memdiag runs, or memdiag itself. RunOf is "" if
// that is unknown, as for another user's process and for a command without the agent.
func RunOf(pid int) string {
	if dir := folderOf(pid); dir != "" {
		return dir
	}
	lists, _ := filepath.Glob(procFile(pid, "task/*/children"))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				if dir := folderOf(n); dir != "" {
					return dir
				}
			}
		}
	}
	return ""
}

func folderOf(pid int) string {
	environment, _ := os.ReadFile(procFile(pid, "environ"))
	for _, variable := range strings.Split(string(environment), "\x00") {
		if dir, ok := strings.CutPrefix(variable, folderVariable+"="); ok {
			return dir
		}
	}
	return ""
}
