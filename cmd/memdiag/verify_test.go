package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestARunOfWhichNothingNamesTheProgramProvesNothing: one that lost run.json, or its command, was never a
// folder of snapshots that the program wrote itself.
func TestARunOfWhichNothingNamesTheProgramProvesNothing(t *testing.T) {
	dir := t.TempDir()
	leaky, fixed := filepath.Join(dir, "leaky"), filepath.Join(dir, "fixed")
	for _, args := range [][]string{{"-o", leaky}, {"-o", fixed, "--fixed"}} {
		if code, _, said := memdiagIn(t, append([]string{"record", "-w", "L30", "--steps", "30", "--every", "6", "-q"}, args...)...); code != exitFine {
			t.Fatalf("record ends with %d: %s", code, said)
		}
	}
	for _, c := range []struct {
		name string
		info string // of run.json; "" for no such file
		want string
	}{
		{"missing", "", "run.json names no command"},
		{"an empty object", "{}", "run.json names no command"},
		{"empty", " ", "cannot tell"},
		{"without what was run", `{"schema_version":1,"steps":30,"version":"x"}`, "run.json names no command"},
	} {
		lose := func(of string) string {
			lost := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(lost, os.DirFS(of)); err != nil {
				t.Fatal(err)
			}
			info := filepath.Join(lost, "run.json")
			err := os.Remove(info)
			if err == nil && c.info != "" {
				err = os.WriteFile(info, []byte(c.info), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			return lost
		}
		for _, runs := range [][2]string{{lose(leaky), fixed}, {leaky, lose(fixed)}, {lose(leaky), lose(fixed)}} {
			if code, out, _ := memdiagIn(t, "verify", runs[0], runs[1]); code != exitInconclusive || !strings.Contains(out.String(), c.want) {
				t.Errorf("%s: ends with %d: %s", c.name, code, out)
			}
		}
	}
	if code, out, _ := memdiagIn(t, "verify", leaky, fixed); code != exitFine {
		t.Errorf("ends with %d: %s", code, out)
	}
}

// A fix that raises an error leaves a run without snapshots: the error is the reason.
func TestVerifySaysThatTheCommandFailed(t *testing.T) {
	failed := 1
	for want, code := range map[string]*int{
		"fixed has 0 snapshots, and growth takes two":                                nil,
		"fixed has 0 snapshots, and growth takes two; its command ended with code 1": &failed,
	} {
		var run snapshot.Run
		run.Info.ExitCode = code
		if got := tooFew("fixed", &run); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
