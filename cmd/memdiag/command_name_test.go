package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record"
)

func TestCommandsAreNamedAfterWhatTheyRun(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Join("trainer", "loops"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, args, want string }{
		{"a program", "/usr/bin/server --port 80", "server"},
		{"a script", "python3.11 -u work/train.py --steps 3", "train"},
		{"a script of another program", "torchrun --nproc-per-node 2 train.py", "train"},
		{"a module", "/x/bin/python -m pkg.train --lr 1", "pkg.train"},
		{"a module after a flag with a value", "python -X dev -m pkg.train", "pkg.train"},
		{"a module after flags in one", "python -um pkg.train", "pkg.train"},
		{"a module without a space", "python -mtimeit pass", "timeit"},
		{"a module that a launcher runs", "python -m torch.distributed.run -m pkg.train", "pkg.train"},
		{"a script that a launcher runs", "python -m torch.distributed.run --nproc-per-node=2 train.py", "train"},
		{"a launcher of its own", "torchrun --nproc-per-node 2 -m pkg.train", "pkg.train"},
		{"behind another program", "env A=1 python -m pkg.train", "pkg.train"},
		{"a script that has a flag -m", "python train.py -m fast", "train"},
		{"a program that has a flag -m", "pytest -m slow", "pytest"},
		{"code that imports a module of this folder", "python -c import\u00a0os,\u00a0trainer.loops;trainer.loops.main()", "trainer.loops"},
		{"code that imports from one", "python -c from\u00a0trainer\u00a0import\u00a0main;main()", "trainer"},
		{"code that imports others", "python -c import\u00a0torch\u00a0as\u00a0t;t.ones(3)", "torch"},
		{"code that imports others after Python's own", "python -c import\u00a0time,\u00a0os.path;import\u00a0torch", "torch"},
		{"code that imports Python's own alone", "python3.11 -c import\u00a0time;from\u00a0os.path\u00a0import\u00a0join;time.sleep(1)", "python3"},
		{"code without a module", "python -c print(1)", "python"},
		{"no module", "python -m ../../etc", "python"},
		{"nothing behind -m", "python -m", "python"},
	} {
		args := strings.Split(c.args, " ")
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "\u00a0", " ") // within a word
		}
		if got := commandName(args); got != c.want {
			t.Errorf("%s: %q is called %s, want %s", c.name, args, got, c.want)
		}
	}
}

func TestTheClosingLineNamesTheLastSnapshotsStep(t *testing.T) {
	for want, o := range map[string]record.Outcome{
		"25 snapshots of 3000 steps, the last at step 2551,": {Snapshots: 25, Steps: 3000, LastStep: 2551},
		"26 snapshots": {Snapshots: 26},
	} {
		if got := recorded(&o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
