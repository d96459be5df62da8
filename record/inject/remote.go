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

// askWithin is how long the interpreter may take that asks another one.
const askWithin = 20 * time.Second

// remote asks by sys.remote_exec, in another process of the same interpreter: versions have to be the same.
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
		// Python would print that it cannot open the file.
		_ = os.WriteFile(script, nil, 0o600)
	}}, nil
}
