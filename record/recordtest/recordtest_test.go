//go:build linux

package recordtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// onlooker is a test that hears what goes wrong, and does not fail of it.
type onlooker struct {
	testing.TB
	mu    sync.Mutex
	wrong []string
}

func (o *onlooker) Errorf(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

func TestMain(m *testing.M) {
	if os.Getenv("RECORDTEST_HANGS") != "" {
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestWhatHangsIsEndedWithAllThatItStarted: the shell ends, and leaves a process behind that
// keeps its standard output open and is of no group or session of the test's.
func TestWhatHangsIsEndedWithAllThatItStarted(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"a child", `exec "$0"`},
		{"an orphan in a session of its own", `setsid "$0" & sleep 0.1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			mark := "RECORDTEST_HANGS=" + t.TempDir()
			cmd := exec.Command("sh", "-c", c.script, self)
			cmd.Env = append(os.Environ(), mark)
			o := &onlooker{TB: t}
			bound(o, mark, 500*time.Millisecond)
			began := time.Now()
			said, _ := cmd.CombinedOutput() // it returns when nobody has the stream open
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it ended after %v", took)
			}
			if !bytes.Contains(said, []byte("SIGABRT")) || !bytes.Contains(said, []byte("recordtest.TestMain(")) {
				t.Errorf("it does not tell where it was: %s", said)
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			if len(o.wrong) != 1 || !strings.Contains(o.wrong[0], self) {
				t.Errorf("said %q", o.wrong)
			}
		})
	}
}

func TestWhatEndsByItselfIsNoHang(t *testing.T) {
	mark := "RECORDTEST=" + t.TempDir()
	cmd := exec.Command("true")
	cmd.Env = append(os.Environ(), mark)
	bound(t, mark, 100*time.Millisecond)
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	time.Sleep(200 * time.Millisecond)
}
