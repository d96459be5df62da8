package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff/baseline"
)

// TestFixedIsSaidOnlyOfARunThatWouldHaveShownTheLeak has a leak of 1,000 blocks in 1,000 steps at the commit c1, and runs
// without it at c2.
func TestFixedIsSaidOnlyOfARunThatWouldHaveShownTheLeak(t *testing.T) {
	leaking := testRun{id: "aaaaaaaa00000001", commit: "c1", ranks: 1, prints: []string{"s1-a"}, growth: 3600}
	column := func(tables Tables, table, name string) int {
		for i, c := range TableNamed(table).Columns {
			if c.Name == name {
				return i
			}
		}
		panic(name)
	}
	set := func(table, name string, value any) func(Tables) {
		return func(tables Tables) {
			c := &tables[table].Columns[column(tables, table, name)]
			if text, ok := value.(string); ok {
				c.Texts[0] = text
			} else {
				c.Ints[0] = int64(value.(int))
			}
		}
	}
	all := func(changes ...func(Tables)) func(Tables) {
		return func(tables Tables) {
			for _, change := range changes {
				change(tables)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(Tables)
		want   string
	}{
		"the same but for the leak":        {all(), "fixed"},
		"another program":                  {set("runs", "command", "python serve.py"), "another program: serve.py"},
		"killed":                           {set("runs", "status", "killed"), "no run ended well"},
		"still going on":                   {set("runs", "status", "unfinished"), "no run ended well"},
		"of 10 steps":                      {set("ranks", "last_step", 10), "10 steps with 5 snapshots are too few"},
		"shorter, but long enough to tell": {all(set("ranks", "last_step", 100), set("ranks", "snapshots", 10)), "fixed"},
		"of as many steps, two snapshots":  {set("ranks", "snapshots", 2), "too few"},
		"that skipped the function":        {set("frames", "function", "other"), "reached update"},
		"that has it in another file":      {set("frames", "file", "/me/model.py"), "reached update"},
		"that has it in a library":         {set("frames", "file", "/lib/python3.12/site-packages/train.py"), "reached update"},
		"that has it by its name alone": {func(t Tables) {
			set("frames", "function", "other")(t)
			t[functionsTable].Append("aaaaaaaa00000002", "update", "/ci/train.py")
		}, "fixed"},
		"that has another file's by its name": {func(t Tables) {
			set("frames", "function", "other")(t)
			t[functionsTable].Append("aaaaaaaa00000002", "update", "/ci/model.py")
		}, "reached update"},
		"that grew there": {func(t Tables) {
			set("findings", "verdict", "inconclusive")(t)
			set("findings", "fingerprint", "s1-a")(t)
		}, "only a longer run can tell"},
		"with other arguments, reaching it": {set("runs", "command", "python train.py --mode eval"), "fixed"},
	} {
		dir := filepath.Join(t.TempDir(), "fleet")
		added(t, dir, leaking)
		tables := testRun{id: "aaaaaaaa00000002", commit: "c2", ranks: 1}.tables()
		c.change(tables)
		if _, err := Add(dir, tables); err != nil {
			t.Fatal(err)
		}
		changes, _, _, err := opened(t, dir).Compare("c1", "c2")
		if err != nil {
			t.Fatal(err)
		}
		got := changes[0].State + " " + changes[0].Why
		if !strings.Contains(got, c.want) || (c.want == "fixed") != (changes[0].State == "fixed") || (changes[0].Saved > 0) != (c.want == "fixed") {
			t.Errorf("a run %s: %s, %d saved; want %s", name, got, changes[0].Saved, c.want)
		}
	}
}

// own is a function of the tests' program.
func own(name string) baseline.Function { return baseline.Function{Name: name, File: "train.py"} }

func TestACallerShowsThatARunReachedTheLineOnlyWithTheSameArguments(t *testing.T) {
	w := wanting{function: own("update"), callers: []baseline.Function{own("step")}, blocks: 100, of: length{100, 5}, run: Run{Command: "python train.py --steps 50"}}
	r := &witness{of: length{100, 5}, functions: map[baseline.Function]bool{own("step"): true}, run: Run{Status: "ended", Command: "python /ci/train.py --steps 60"}}
	if why := w.unproven([]*witness{r}); why != "" {
		t.Errorf("with another number of steps: %s", why)
	}
	for _, command := range []string{"python train.py --skip", ""} {
		r.run.Command = command
		if w.unproven([]*witness{r}) == "" {
			t.Errorf("with %q it is fixed", command)
		}
	}
}

func TestRunsWhoseCommandsAreNotStoredAreNotJudged(t *testing.T) {
	w := wanting{function: own("update"), blocks: 100, of: length{100, 5}}
	r := &witness{of: length{100, 5}, functions: map[baseline.Function]bool{own("update"): true}}
	for _, c := range []struct{ before, after, beforeWorkload, workload, want string }{
		{"", "", "", "", "commands are not stored"},
		{"#a", "#b", "", "", "commands are not stored"}, // --steps 200 and 400
		{"#a", "", "", "", "commands are not stored"},
		{"#a", "python train.py", "", "", "commands are not stored"},
		{"#a", "#b", "L30", "", "commands are not stored"},
		{"#a", "#a", "", "", ""},
		{"#a", "#b", "L30", "L30", ""},
		{"#a", "#b", "L30", "L1", "it is another program: workload L1, not workload L30"},
		{"", "", "L30", "L30", ""},
	} {
		w.run = Run{Command: c.before, Workload: c.beforeWorkload}
		r.run = Run{Command: c.after, Workload: c.workload, Status: "ended"}
		if got := w.unproven([]*witness{r}); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	w.function = baseline.Function{}
	if got := w.unproven([]*witness{r}); got != "its function is not known" {
		t.Errorf("of a leak without frames: %q", got)
	}
}

func TestPartsOfAnOlderMemdiagHaveNoFunctions(t *testing.T) {
	python := duckdb(t)
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two...)
	for _, p := range opened(t, dir).Parts {
		remove(t, p.file(functionsTable))
	}
	if got := asked(t, python, views(t, dir, DuckDB), []string{"SELECT count(*) FROM functions"}); got[0][0][0] != 0. {
		t.Errorf("DuckDB has %v", got)
	}
	if _, err := Compact(dir, epoch); err != nil {
		t.Fatal(err)
	}
	if got := summary(t, opened(t, dir)); got != ofTwo {
		t.Errorf("after they were merged\n%s", got)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
