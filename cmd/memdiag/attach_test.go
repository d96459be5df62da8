package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// attachable is a program that leaks, and prints at its end what has changed in it, on a line that begins with "changed".
const attachable = `
import signal, sys, threading, time, os

class Sample:
    pass

kept = []

def state():
    import gc, _tracemalloc
    return dict(threads=len(sys._current_frames()), usr1=signal.getsignal(signal.SIGUSR1), int=signal.getsignal(signal.SIGINT), path=list(sys.path),
        finders=len(sys.meta_path), traced=_tracemalloc.is_tracing(), tracer=sys.gettrace(), profiler=sys.getprofile(), gc=gc.isenabled(),
        callbacks=len(gc.callbacks), names=sorted(globals()), ours=[m for m in sys.modules if "memdiag" in m], files=len(os.listdir("/proc/self/fd")),
        ident=threading.Thread._set_ident, excepthook=sys.excepthook)

def main():
    for name in "began", "ended":
        globals()[name] = None
    began = state()
    with open(sys.argv[2], "w") as f:
        f.write("begun")
    while not os.path.exists(sys.argv[1]):
        kept.append(Sample())
        time.sleep(0.002)
    ended = state()
    print("changed", [(k, began[k], ended[k]) for k in began if began[k] != ended[k]])

main()
sys.exit(7)
`

// attachablePythons are those that can be attached to on this machine.
func attachablePythons(t *testing.T) (all []string) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("attach is for Linux on x86-64, or Python 3.14")
	}
	cache, _ := os.UserCacheDir()
	for _, name := range []string{"python3", filepath.Join(cache, "memdiag", "python3.14", "usr", "bin", "python3.14")} {
		if path, err := exec.LookPath(name); err == nil {
			all = append(all, path)
		}
	}
	if len(all) == 0 {
		t.Skip("no Python here")
	}
	return all
}

func TestAttachNamesWhatGrowsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, python := range attachablePythons(t) {
		for _, how := range heavytest.Of(t, []os.Signal{os.Interrupt, os.Kill}, []os.Signal{os.Interrupt}) {
			t.Run(fmt.Sprintf("%s ends by %v", filepath.Base(python), how), func(t *testing.T) {
				dir := t.TempDir()
				stop := filepath.Join(dir, "stop")
				program := exec.Command(python, "-c", attachable, stop, filepath.Join(dir, "begun"))
				var output, complaints bytes.Buffer
				program.Stdout, program.Stderr = &output, &complaints
				if err := program.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = program.Process.Kill() }() // it has ended, or the test has failed
				begun := filepath.Join(dir, "begun")
				waitFor(t, "the program begins", func() bool { return textOf(begun) != "" })
				run := filepath.Join(dir, "run")
				attach := exec.Command("memdiag", "attach", fmt.Sprint(program.Process.Pid), "--census", "1s", "-o", run)
				attach.Env = append(os.Environ(), "TMPDIR="+dir)
				said := filepath.Join(dir, "said")
				talk, err := os.Create(said)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = talk.Close() }() // it is read by its name
				attach.Stderr = talk
				if err := attach.Start(); err != nil {
					t.Fatal(err)
				}
				waitFor(t, "the census", func() bool { return strings.Contains(textOf(said), "objects of type") })
				if how == os.Kill {
					_ = attach.Process.Kill()
				} else {
					_ = attach.Process.Signal(syscall.SIGINT)
				}
				_ = attach.Wait()
				if !strings.Contains(textOf(said), "`__main__.kept` grew") || !strings.Contains(textOf(said), "__main__.Sample grew") {
					t.Errorf("said %s", textOf(said))
				}
				patience := 500 * time.Millisecond // in which the agent's threads end
				if how == os.Interrupt && !strings.Contains(textOf(filepath.Join(run, "run.json")), `"packages": {`) {
					t.Error("nothing says which packages the program has imported")
				}
				if how == os.Kill {
					patience = 2 * time.Second // nobody says that the agent has left
				}
				time.Sleep(patience)
				if err := os.WriteFile(stop, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				err = program.Wait()
				if program.ProcessState.ExitCode() != 7 || complaints.Len() > 0 || output.String() != "changed []\n" {
					t.Errorf("the program ended with %v, wrote %q and %q", err, output.String(), complaints.String())
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "memdiag-agent-*")); how == os.Interrupt && len(left) > 0 {
					t.Errorf("files are left: %v", left)
				}
			})
		}
	}
}

// waitFor waits for something to become true.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for this: %s", what)
		}
	}
}

// textOf is a file's; "" if there is none.
func textOf(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}
