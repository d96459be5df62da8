package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record/recordtest"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// TestPythonCallsMemdiag runs programs that call memdiag, with its Python package and a run that leaks.
func TestPythonCallsMemdiag(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("memdiag") // TestMain puts it on PATH
	if err != nil {
		t.Fatal(err)
	}
	leaking := filepath.Join(t.TempDir(), "run")
	if out, err := recordtest.Command(t, program, "record", "-q", "--workload", "L30", "--steps", "100", "--every", "25", "--out", leaking).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cache := t.TempDir()
	path := recordtest.Command(t, program, "python-path")
	path.Env = append(path.Env, "XDG_CACHE_HOME="+cache)
	agent, err := path.Output()
	if err != nil {
		t.Fatal(err)
	}
	for script, imports := range map[string]string{"calls.py": "import json", "notebook.py": "import IPython"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			python := pythonOf(t, "torch", imports)
			script, err := filepath.Abs("../../testdata/python/" + script)
			if err != nil {
				t.Fatal(err)
			}
			cmd := recordtest.Command(t, python, script, leaking)
			cmd.Dir = t.TempDir()
			cmd.Env = append(cmd.Env, "MEMDIAG="+program, "PYTHONPATH="+strings.TrimSpace(string(agent)), "IPYTHONDIR="+t.TempDir())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestAProgramTakesSnapshots runs a program that compares the snapshots which it asks for with what it knows.
func TestAProgramTakesSnapshots(t *testing.T) {
	heavytest.Skip(t, "it trains with PyTorch")
	t.Parallel()
	r := recordProgram(t, []string{"record"}, torchPython(t), "../../testdata/python/snapshots.py")
	if r.code != exitFine {
		t.Fatalf("code %d: %s", r.code, r.said)
	}
	var out, said bytes.Buffer
	if run(append([]string{"diff"}, strings.Fields(r.stdout)...), nil, &out, &said); !strings.Contains(out.String(), "snapshots.py:43") {
		t.Errorf("no line of what grew between the last two snapshots: %s%s", &out, &said)
	}
}

// TestWatchesSayHowManyTensorsStay reads what a recorded program's watches found.
func TestWatchesSayHowManyTensorsStay(t *testing.T) {
	heavytest.Skip(t, "it calls PyTorch some hundred times")
	t.Parallel()
	r := recordProgram(t, []string{"record"}, torchPython(t), "../../testdata/python/watched.py")
	if r.code != exitFine {
		t.Fatalf("code %d: %s", r.code, r.said)
	}
	var calls, tensors int
	leaks := regexp.MustCompile(`watch "leaks": after (\d+) calls (?:about )?(\d+) tensors \(.* KiB\) stay, held by list .__main__.kept. \(\d+ items\)`).FindStringSubmatch(r.said)
	if leaks == nil {
		t.Fatalf("no word of what leaks: %s", r.said)
	}
	if _, err := fmt.Sscan(leaks[1]+" "+leaks[2], &calls, &tensors); err != nil || tensors != calls || calls < 10 {
		t.Errorf("%d tensors of %d calls: %v", tensors, calls, err)
	}
	for _, name := range []string{"replaces", "recursive", "forward", "raises", "generator"} {
		if !regexp.MustCompile(`watch "` + name + `": after \d+ calls no tensor stays`).MatchString(r.said) {
			t.Errorf("%s: %s", name, r.said)
		}
	}
	var awaited, stay int
	if m := regexp.MustCompile(`watch "coroutine": after (\d+) calls (?:about )?(\d+) tensors \(.*\) stay`).FindStringSubmatch(r.said); m == nil {
		t.Errorf("coroutine: %s", r.said)
	} else if _, err := fmt.Sscan(m[1]+" "+m[2], &awaited, &stay); err != nil || awaited < 20 || 10*max(stay-awaited, awaited-stay) > awaited {
		t.Errorf("coroutine: %d tensors of %d calls: %v", stay, awaited, err)
	}
	snapshots, err := filepath.Glob(filepath.Join(r.dir, "snapshot_*.json"))
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("no snapshots: %v", err)
	}
	for _, path := range snapshots {
		if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "_wrapper.py") {
			t.Errorf("%s: %v; want no frame of memdiag's wrappers", path, err)
		}
	}
	if !regexp.MustCompile(`watch "once": after \d+ calls (about )?2 tensors \(80 B\) stay(; \d+ of 100 calls were looked at)?\n`).MatchString(r.said) {
		t.Errorf("once: %s", r.said)
	}
}

// TestCallbacksMarkWhatTheLibrariesDo trains with each library, with memdiag's callback and without.
func TestCallbacksMarkWhatTheLibrariesDo(t *testing.T) {
	heavytest.Skip(t, "trainings with seven libraries, whose imports take seconds each")
	program, err := exec.LookPath("memdiag") // TestMain puts it on PATH
	if err != nil {
		t.Fatal(err)
	}
	path := recordtest.Command(t, program, "python-path")
	path.Env = append(path.Env, "XDG_CACHE_HOME="+t.TempDir())
	agent, err := path.Output()
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../testdata/python/callbacks.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, library := range []string{"transformers", "accelerate", "lightning", "composer", "stable_baselines3", "ignite", "keras"} {
		t.Run(library, func(t *testing.T) {
			environment := "trainers"
			if library == "composer" {
				environment = library // its requirements are not those of the others
			}
			python := pythonOf(t, environment, "import os; os.environ['KERAS_BACKEND'] = 'torch'; import "+library)
			cmd := recordtest.Command(t, python, script, library)
			cmd.Dir = t.TempDir()
			cmd.Env = append(cmd.Env, "PYTHONPATH="+strings.TrimSpace(string(agent)), "OMP_NUM_THREADS=1", "CUDA_VISIBLE_DEVICES=")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestTrackersHaveTheVerdict trains a program that leaks with a run open in each tracker, which then reads back what it has.
func TestTrackersHaveTheVerdict(t *testing.T) {
	heavytest.Skip(t, "a training with three trackers, whose imports take seconds each")
	t.Parallel()
	names := []string{"tensorboard", "wandb", "mlflow"}
	script, err := filepath.Abs("../../testdata/python/tracked.py")
	if err != nil {
		t.Fatal(err)
	}
	python := pythonOf(t, "trainers", "import "+strings.Join(names, ", "))
	t.Run("open", func(t *testing.T) {
		r := recordProgram(t, []string{"record", "--log-to", strings.Join(names, ",")}, append([]string{python, script}, names...)...)
		if r.code != exitFine || strings.Contains(r.said, "logged") {
			t.Errorf("code %d: %s", r.code, r.said)
		}
		if left, _ := filepath.Glob(filepath.Join(r.dir, ".*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("none open", func(t *testing.T) {
		r := recordProgram(t, []string{"record", "--log-to", "wandb"}, python, "../../testdata/scripts/clean_plain.py")
		if !strings.Contains(r.said, "nothing was logged to wandb") {
			t.Errorf("code %d: %s", r.code, r.said)
		}
	})
}
