//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty is a terminal of so many columns and lines: keys go into it, and what a program draws is kept.
type pty struct {
	*os.File // the user's side
	program  *os.File
	mu       sync.Mutex
	drawn    bytes.Buffer
}

func openPTY(t *testing.T, columns, lines uint16) *pty {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(user.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{File: user, program: program}
	p.resize(t, columns, lines)
	t.Cleanup(func() { _ = program.Close(); _ = user.Close() })
	go func() {
		part := make([]byte, 4096)
		for {
			n, err := user.Read(part)
			p.mu.Lock()
			p.drawn.Write(part[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *pty) resize(t *testing.T, columns, lines uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(p.program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: lines}); err != nil {
		t.Fatal(err)
	}
}

// state is how the terminal treats keys.
func (p *pty) state(t *testing.T) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(p.program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// await waits until all of these texts were drawn, and returns what was, which begins anew then.
func (p *pty) await(t *testing.T, texts ...string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		p.mu.Lock()
		got, missing := p.drawn.String(), ""
		for _, text := range texts {
			if !strings.Contains(got, text) {
				missing = text
			}
		}
		if missing == "" {
			p.drawn.Reset()
		}
		p.mu.Unlock()
		if missing == "" {
			return got
		}
		if time.Now().After(end) {
			t.Fatalf("%q is not drawn: %q", missing, got)
		}
	}
}

func (p *pty) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := p.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// begin starts memdiag in the terminal, which is the controlling one of its session.
func (p *pty) begin(t *testing.T, dir string, environment []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "memdiag", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.program, p.program, p.program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

const enterScreen, leaveScreen = "\x1b[?1049h", "\x1b[?1049l"

var colour = regexp.MustCompile(`\x1b\[(?:[0-9]+;)*3[0-9](?:;[0-9]+)*m`)

// TestAWholeScreenOnATerminal: keys do what they say, and the terminal is as it was after each way out.
func TestAWholeScreenOnATerminal(t *testing.T) {
	dir := t.TempDir()
	evil := "run\x1b]0;owned\x07"
	if out, err := exec.CommandContext(t.Context(), "memdiag", "record", "-q", "--workload", "L30", "--steps", "60", "--every", "5", "-o", filepath.Join(dir, evil)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		name, out   string
		environment []string
		leave       func(*testing.T, *pty, *exec.Cmd)
	}{
		{"q", "plain", []string{"NO_COLOR=1"}, func(t *testing.T, p *pty, _ *exec.Cmd) { p.press(t, "q") }},
		{"Ctrl-C", "coloured", nil, func(t *testing.T, p *pty, _ *exec.Cmd) { p.press(t, "\x03") }},
		{"a signal", "coloured", nil, func(t *testing.T, _ *pty, cmd *exec.Cmd) {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := openPTY(t, 120, 30)
			before := p.state(t)
			cmd := p.begin(t, dir, append([]string{"TERM=xterm-256color", "NO_COLOR="}, c.environment...), "watch", evil, "--full", "--max-live", "1MiB")
			all := p.await(t, enterScreen, `run\x1b]0;owned\a`, "feature_pyramid.go", "512 KiB/step", "over budget", "q quit")
			if p.state(t) == before {
				t.Error("keys would be echoed")
			}
			p.press(t, "\r")
			all += p.await(t, "Potential leak detected", "Held by")
			p.press(t, "r")
			all += p.await(t, "wrote ")
			p.resize(t, 60, 12)
			all += p.await(t, "…")
			c.leave(t, p, cmd)
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitLeak {
				t.Errorf("%v", err)
			}
			after := p.await(t, leaveScreen, "with exit code 0; 1 leak")
			if p.state(t) != before {
				t.Error("the terminal is not as it was")
			}
			if strings.Contains(all+after, "\x1b]0;") {
				t.Errorf("the folder's name drives the terminal: %q", all)
			}
			if got := colour.MatchString(all); got != (c.out == "coloured") {
				t.Errorf("coloured %v: %q", got, all)
			}
			_, said, _ := strings.Cut(after, leaveScreen)
			if !strings.Contains(said, "over budget: ") {
				t.Errorf("what was said is not there after the screen: %q", said)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, evil+".html")); err != nil {
		t.Error(err)
	}
}
