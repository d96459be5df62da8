package inject

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// askWithin is how long the interpreter that calls sys.remote_exec may take.
const askWithin = 20 * time.Second

// remote calls sys.remote_exec in a new process of the same interpreter, since the versions must be equal.
func (p *Process) remote(ctx context.Context, text, scratch string) (*Pending, error) {
	script := filepath.Join(scratch, "statement.py")
	if err := os.WriteFile(script, []byte(text+"\n"), 0o600); err != nil {
		return nil, err
	}
	if err := p.Own(script); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	command := exec.CommandContext(ctx, p.Program, "-I", "-S", "-c", "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])", strconv.Itoa(p.PID), script)
	if out, err := command.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return nil, &Error{fmt.Sprintf("process %d does not take sys.remote_exec: %s", p.PID, strings.TrimSpace(lines[len(lines)-1])),
			"it needs the same user or root, and a process without PYTHON_DISABLE_REMOTE_DEBUG"}
	}
	return &Pending{How: "sys.remote_exec", cancel: func() {
		// The file is emptied, not removed: Python would print that it cannot open it.
		_ = os.WriteFile(script, nil, 0o600)
	}}, nil
}
