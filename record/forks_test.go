//go:build unix

package record_test

import (
	"path/filepath"
	"testing"

	"github.com/memdiag/memdiag/record"
)

// forking forks, with warnings as errors.
const forking = `
import os, time, warnings
warnings.simplefilter("error")
before = list(warnings.filters)
time.sleep(0.3)
for _ in range(3):
    if pid := os.fork():
        assert os.waitpid(pid, 0)[1] == 0
    else:
        os._exit(warnings.filters != before)
time.sleep(0.3)  # Python may not find its threads, and not warn
print(warnings.filters == before)
`

// From Python 3.12 on, os.fork warned of the agent's thread, and raised an error in a program that has warnings as errors.
func TestAForkDoesNotWarnOfOurThread(t *testing.T) {
	t.Parallel()
	r := runInto(t, filepath.Join(t.TempDir(), "run"), record.Options{}, python(t), script(t, forking))
	if r.ExitCode != 0 || r.stdout != "True\n" || r.stderr != "" {
		t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
	}
	agentProgram(t, `
import sys, warnings
from memdiag import _forks

def warns(text, kind):
    try:
        warnings.warn(text, kind)
    except kind as e:
        print(type(e).__name__)

sys.version_info, _forks.threads = (3, 12), lambda: threads
warnings.simplefilter("error")
before, hidden = list(warnings.filters), _forks.Hidden()
beside = "This process (pid=1) is multi-threaded, use of fork() may lead to deadlocks in the child."
for threads in 2, 3:
    hidden.forks()
    warns("other", UserWarning)
    warns(beside, DeprecationWarning)
    print(threads, warnings.filters == before)
hidden.begin()
hidden.end()
print(warnings.filters == before)
`, "UserWarning\n2 True\nUserWarning\nDeprecationWarning\n3 True\nTrue\n")
}
