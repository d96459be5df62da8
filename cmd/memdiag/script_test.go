package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/record/recordtest"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// TestMain makes the test binary answer to the name memdiag, in scripts and in
// the commands of the docs.
func TestMain(m *testing.M) {
	if record.Witness() {
		return
	}
	if name := filepath.Base(os.Args[0]); strings.TrimSuffix(name, ".exe") != "memdiag" {
		// Under nohup, what a test starts would ignore hangups, and a script that sends one would wait for ever.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	// Of what hangs, and is aborted, Python tells the threads.
	_ = os.Setenv("PYTHONFAULTHANDLER", "1")
	// Tests run side by side, and PyTorch would take all processors for each.
	_ = os.Setenv("OMP_NUM_THREADS", "1")
	testscript.Main(m, map[string]func(){"memdiag": main})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			repository, err := os.Getwd()
			env.Setenv("TESTDATA", repository+"/../../testdata")
			env.Setenv("EXAMPLES", repository+"/../../examples/ci")
			env.Setenv("PYTHONFAULTHANDLER", "1")
			recordtest.Bound(t, "WORK="+env.WorkDir)
			return err
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode":   exitCodeIs,
			"brokenpipe": brokenPipe,
		},
	})
}

// condition is [race], under the race detector, [heavy] where all tests are asked for, or what lacks says.
func condition(name string) (bool, error) {
	switch name {
	case "race":
		return heavytest.Race, nil
	case "heavy":
		return heavytest.Asked(), nil
	}
	return lacks(name)
}

// lacks is the condition [lacks:git], which holds if there is no such program, or [lacks:mounts] if this user may not mount, and
// fails in CI, which must have what a script needs.
func lacks(condition string) (bool, error) {
	name, ok := strings.CutPrefix(condition, "lacks:")
	if !ok {
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	_, err := exec.LookPath(name)
	if name == "mounts" {
		err = exec.Command("unshare", "-m", "true").Run()
	}
	if err != nil && os.Getenv("CI") == "true" {
		return false, err
	}
	return err != nil, nil
}

// exitCodeIs runs "exitcode N command …": the command must end with code N.
func exitCodeIs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N command …")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// brokenPipe runs "brokenpipe command …" into a pipe that nobody reads; the
// command must end with 0 and say nothing.
func brokenPipe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: brokenpipe command …")
	}
	r, w, err := os.Pipe()
	ts.Check(err)
	ts.Check(r.Close())
	defer func() { _ = w.Close() }()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = append(os.Environ(), "WORK="+cmd.Dir)
	cmd.Stdout = w
	said, err := os.CreateTemp(ts.Getenv("WORK"), "stderr")
	ts.Check(err)
	defer func() { _ = said.Close() }()
	cmd.Stderr = said
	ts.Check(cmd.Run())
	if text := ts.ReadFile(said.Name()); text != "" {
		ts.Fatalf("said on stderr: %s", text)
	}
}
