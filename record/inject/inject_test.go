package inject

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// pythons are those of this machine that can be asked.
func pythons(t *testing.T) []string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("a running process is asked on Linux on x86-64 only")
	}
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no Python here")
	}
	all := []string{path}
	if more := os.Getenv("MEMDIAG_PYTHONS"); more != "" {
		all = append(all, strings.Fields(more)...)
	}
	return all
}

// sleeper waits in system calls that a stop interrupts, and works; it ends with 0 if all that it saw was right.
const sleeper = `
import signal, sys, time, math
got = []
signal.signal(signal.SIGUSR2, lambda *_: got.append(1))
with open(sys.argv[2], "w") as f:
    f.write("ready")
begun, x = time.monotonic(), 0.0
while time.monotonic() < begun + float(sys.argv[1]):
    before = time.monotonic()
    time.sleep(0.005)
    assert time.monotonic() - before >= 0.005
    for i in range(2000):
        x += math.sqrt(i) * 1.5
    assert "asked" not in globals(), "a name is left"
print("done", len(got))
`

func TestExecuteLeavesTheProgramAsItWas(t *testing.T) {
	for _, python := range pythons(t) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(python))), func(t *testing.T) {
			dir := t.TempDir()
			program := exec.Command(python, "-c", sleeper, "1.5", filepath.Join(dir, "ready"))
			var output, errors strings.Builder
			program.Stdout, program.Stderr = &output, &errors
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = program.Process.Kill() }() // it has ended, or the test has failed
			asked := filepath.Join(dir, "asked.py")
			if err := os.WriteFile(asked, []byte("with open(__file__ + '.done', 'a') as f: f.write('x')\nasked = 1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(10 * time.Millisecond) {
				if text, _ := os.ReadFile(filepath.Join(dir, "ready")); len(text) > 0 {
					break
				}
			}
			for n := 1; n <= 20; n++ {
				process, err := Find(program.Process.Pid)
				if err != nil {
					t.Fatal(err)
				}
				pending, err := process.Execute(context.Background(), asked, dir)
				if err != nil {
					t.Fatal(err)
				}
				done := 0
				for begun := time.Now(); done < n && time.Since(begun) < 5*time.Second; time.Sleep(time.Millisecond) {
					text, _ := os.ReadFile(asked + ".done") // it may not be there yet
					done = len(text)
				}
				pending.Cancel()
				if done != n {
					t.Fatalf("executed %d times, want %d", done, n)
				}
			}
			if err := program.Wait(); err != nil || !strings.Contains(output.String(), "done 0") || errors.String() != "" {
				t.Errorf("the program ended with %v, wrote %q and %q", err, output.String(), errors.String())
			}
		})
	}
}
