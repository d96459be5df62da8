package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

func TestReadingARunIsProgressOnATerminalAlone(t *testing.T) {
	dir := t.TempDir()
	w, err := rundir.Create(dir, snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []int64{0, 50} {
		if err := w.WriteSnapshot(step, &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}, Rank: snapshot.NoRank}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tty := range []bool{true, false} {
		var out bytes.Buffer
		clock := time.Unix(0, 0)
		env := &environment{rank: snapshot.NoRank, talk: &talker{w: &out, term: terminal{tty: tty}, now: func() time.Time {
			clock = clock.Add(200 * time.Millisecond)
			return clock
		}}}
		if _, err := env.openRun([]string{dir}); err != nil {
			t.Fatal(err)
		}
		said := regexp.MustCompile(`snapshot_50.memdiag, 2 of 2: \d+ B of \d+ B`).MatchString(out.String())
		if said != tty || tty && !strings.HasSuffix(out.String(), "\r\x1b[K") {
			t.Errorf("terminal %v: said %q", tty, out.String())
		}
	}
}

func TestRunsOfOneSecondHaveFoldersOfTheirOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	env, _, _ := newTestEnvironment()
	var names []string
	for range 3 {
		name := env.freshFolder("job")
		if slices.Contains(names, name) {
			t.Fatalf("%s again, of %v", name, names)
		}
		if err := os.Mkdir(name, 0o777); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
}
