package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

func TestSnapshotsAreInTheOrderInWhichTheyWereTaken(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	type file struct {
		name string
		step int64
		time time.Time
	}
	const none = snapshot.NoStep
	for _, c := range []struct {
		name  string
		files []file
		want  string // of the names; what the error says where there is to be none
		note  string
	}{
		{"by their steps", []file{{"a", 30, at(1)}, {"b", 9, at(2)}}, "b a", ""},
		{"by the clock where no step is known", []file{{"b", none, at(1)}, {"a", none, at(2)}}, "b a", "the clock"},
		{"by the clock where one tells no step", []file{{"50_b", none, at(60)}, {"50", 50, at(50)}, {"100", 100, at(99)}}, "50 50_b 100", "the clock"},
		{"with a step by the clock", []file{{"0", 0, at(0)}, {"b", none, at(33)}, {"50", 50, at(50)}, {"100", 100, at(100)}}, "0 b 50 100", "b is taken for step 33"},
		{"with a last step at the pace of the last two", []file{{"oom", none, at(130)}, {"0", 0, at(2)}, {"50", 50, at(50)}, {"100", 100, at(100)}}, "0 50 100 oom", "oom is taken for step 130"},
		{"with a step of its own right after the last", []file{{"oom", none, at(101)}, {"0", 0, at(2)}, {"5", 5, at(50)}, {"10", 10, at(100)}}, "0 5 10 oom", "oom is taken for step 11"},
		{"with a step before the first", []file{{"b", none, at(20)}, {"40", 40, at(40)}, {"50", 50, at(50)}, {"100", 100, at(100)}}, "b 40 50 100", "b is taken for step 20"},
		{"with step 0 where training began late", []file{{"b", none, at(1)}, {"40", 40, at(80)}, {"50", 50, at(90)}, {"60", 60, at(100)}}, "b 40 50 60", "b is taken for step 0"},
		{"without a step where there is none between", []file{{"b", none, at(55)}, {"0", 0, at(2)}, {"5", 5, at(50)}, {"6", 6, at(100)}}, "0 5 b 6", "the order is the clock's"},
		{"by steps that the clock speaks against", []file{{"x", none, at(60)}, {"50", 50, at(99)}, {"100", 100, at(50)}}, "50 100", "left out"},
		{"by the recorder's count where the clock was put back", []file{{"snapshot_t1.json", none, at(10)}, {"snapshot_t10.json", none, at(5)}, {"snapshot_t2.json", none, at(20)}}, "snapshot_t1.json snapshot_t2.json snapshot_t10.json", "the recorder's count"},
		{"by the last event of the recording", []file{{"b", none, at(-1)}, {"a", none, at(-2)}}, "a b", "the clock"},
		{"by numbers in names", []file{{"x10", none, time.Time{}}, {"x9", none, time.Time{}}}, "x9 x10", "the names"},
		{"without the one that fits nowhere", []file{{"50_b", none, time.Time{}}, {"50", 50, time.Time{}}, {"100", 100, time.Time{}}}, "50 100", "left out, since nothing tells where among the others: 50_b"},
		{"an out-of-memory error last", []file{{"oom_snapshot", none, time.Time{}}, {"step_5", 5, time.Time{}}}, "step_5 oom_snapshot", "comes last"},
		{"none", []file{{"before", none, time.Time{}}, {"after", none, time.Time{}}}, "the order of its snapshots is unknown", ""},
		{"one alone", []file{{"dump", none, time.Time{}}}, "dump", "the names"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var list []opened
			for _, f := range c.files {
				s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: f.step, Time: f.time}}
				if f.time.Unix() < 0 && !f.time.IsZero() {
					s.Mark.Time, s.History.Last = time.Time{}, f.time
				}
				list = append(list, opened{snapshot: s, name: f.name, step: f.step})
			}
			list, note, err := arrange(list)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Error(err)
				}
				return
			}
			var names []string
			for _, o := range list {
				names = append(names, o.name)
			}
			if d := cmp.Diff(c.want, strings.Join(names, " ")); d != "" || !strings.Contains(note, c.note) || (note == "") != (c.note == "") {
				t.Errorf("%s; note %q", d, note)
			}
		})
	}
}

func TestStepsThatBeginAnewInEachEpochGiveTheOrder(t *testing.T) {
	for _, c := range []struct{ name, files, want, note string }{
		{"anew", "snapshot_epoch_10_step_50 snapshot_epoch_9_step_100 snapshot_epoch_9_step_50 snapshot_epoch_10_step_100", "snapshot_epoch_9_step_50 snapshot_epoch_9_step_100 snapshot_epoch_10_step_50 snapshot_epoch_10_step_100", "begin anew in each epoch"},
		{"anew, the step first", "it1_ep0 it1_ep1 it2_ep0 it2_ep1", "it1_ep0 it2_ep0 it1_ep1 it2_ep1", "begin anew in each epoch"},
		{"anew, at other steps", "ep0_step40 ep0_step80 ep1_step20 ep1_step60", "ep0_step40 ep0_step80 ep1_step20 ep1_step60", "begin anew in each epoch"},
		{"of the whole run", "ep1_step150 ep0_step50 ep0_step100", "ep0_step50 ep0_step100 ep1_step150", ""},
		{"one an epoch", "epoch_10 epoch_9", "epoch_9 epoch_10", ""},
		{"twice", "a_ep0_step1 b_ep0_step1 a_ep1_step1 b_ep1_step1", "a_ep0_step1 a_ep1_step1 b_ep0_step1 b_ep1_step1", ""},
	} {
		var list []opened
		for _, name := range strings.Fields(c.files) {
			list = append(list, newNamePatterns().opened(&snapshot.Snapshot{Mark: snapshot.Mark{Step: snapshot.NoStep}}, name))
		}
		if note := setSteps(list); note != "" {
			t.Errorf("%s: note %q", c.name, note)
		}
		list, note, err := arrange(list)
		var names []string
		for _, o := range list {
			names = append(names, o.name)
		}
		if d := cmp.Diff(c.want, strings.Join(names, " ")); d != "" || err != nil || !strings.Contains(note, c.note) || (note == "") != (c.note == "") {
			t.Errorf("%s: %s; note %q, %v", c.name, d, note, err)
		}
	}
}

func TestARunWhoseOrderNothingTellsIsRefused(t *testing.T) {
	dir := t.TempDir()
	text := strings.ReplaceAll(torchJSON(0), `"device_traces"`, `"no_traces"`)
	write(t, dir, "zebra.json", text)
	write(t, dir, "apple.json", text)
	_, err := OpenRun(dir)
	if err == nil || !strings.HasPrefix(err.Error(), dir+": the order of its snapshots is unknown") {
		t.Errorf("got %v", err)
	}
	write(t, filepath.Join(dir, "one"), "apple.json", text)
	if _, err := OpenRun(filepath.Join(dir, "one")); err != nil {
		t.Error(err)
	}
}

func TestAnEmptyFileIsSaid(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "step_1.json", torchJSON(0))
	write(t, dir, "step_2.json", "")
	run, err := OpenRun(dir)
	if err != nil || len(run.Notes) != 1 || !strings.Contains(run.Notes[0], "step_2.json") || !strings.Contains(run.Notes[0], "empty") {
		t.Errorf("%v, %v", run.Notes, err)
	}
}

func TestSnapshotsThatTheShellOrderedAreSorted(t *testing.T) {
	list := func(steps ...int64) (l []opened) {
		for _, step := range steps {
			l = append(l, opened{snapshot: &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}}})
		}
		return l
	}
	for _, c := range []struct {
		given, want []int64
		sorted      bool
	}{
		{[]int64{1, 104, 16, 8}, []int64{1, 8, 16, 104}, true},
		{[]int64{1, 8, 16}, []int64{1, 8, 16}, false},
		{[]int64{0, 50, 0, 50}, []int64{0, 50, 0, 50}, false},
		{[]int64{9, snapshot.NoStep, 1}, []int64{9, snapshot.NoStep, 1}, false},
	} {
		got := list(c.given...)
		sorted := sortGiven(got)
		var steps []int64
		for _, o := range got {
			steps = append(steps, o.snapshot.Mark.Step)
		}
		if !slices.Equal(steps, c.want) || sorted != c.sorted {
			t.Errorf("%v: got %v, sorted %v", c.given, steps, sorted)
		}
	}
}

func TestSeveralSetsInAFolderAreNotOneRun(t *testing.T) {
	dir := t.TempDir()
	for _, set := range []string{"heap", "allocs"} {
		for _, step := range []int64{0, 10} {
			write(t, dir, fmt.Sprintf("%s_%d.memdiag", set, step), ours(t, step, 0, "us"))
		}
	}
	_, err := OpenRun(dir)
	var input *InputError
	if !errors.As(err, &input) {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "2 sets of snapshots with the same steps, such as allocs_0.memdiag, heap_0.memdiag") ||
		!strings.HasSuffix(input.Hint(), filepath.Join(dir, "heap_*.memdiag")) {
		t.Errorf("got %v, hint %q", err, input.Hint())
	}
	write(t, dir, "allocs_20.memdiag", ours(t, 20, 0, "us"))
	if _, err := OpenRun(dir); !errors.As(err, &input) || !strings.HasSuffix(input.Hint(), filepath.Join(dir, "allocs_*.memdiag")) {
		t.Errorf("got %v, hint %q", err, input.Hint())
	}
	for _, name := range []string{"allocs_10.memdiag", "allocs_20.memdiag"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenRun(dir); err != nil { // another of one step is no set
		t.Error(err)
	}
}

// TestACommandThatCountsNoStepsIsNoNews is of a run that memdiag recorded by the clock, and of the
// same files without its run.json.
func TestACommandThatCountsNoStepsIsNoNews(t *testing.T) {
	dir := t.TempDir()
	w, err := rundir.Create(dir, snapshot.Info{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: snapshot.NoStep, Time: time.Unix(int64(i), 0)}, Stacks: snapshot.NewStacks(), Rank: snapshot.NoRank}
		if _, err := w.WriteTick(i, native.Ending, func(to io.Writer) error { return native.Encode(to, s) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, news := range []bool{false, true} {
		run, err := OpenRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(strings.Join(run.Notes, "\n"), "tell no step"); told != news {
			t.Errorf("that there are no steps is said: %t; %q", told, run.Notes)
		}
		if err := os.RemoveAll(filepath.Join(dir, rundir.InfoName)); err != nil {
			t.Fatal(err)
		}
	}
}

// Profiles that curl fetched from a server are numbered, and a server has no steps.
func TestNumbersOfFetchedProfilesAreNoSteps(t *testing.T) {
	for _, c := range []struct {
		name     string
		names    []string
		seconds  []int64
		producer string
		clock    bool
	}{
		{"fetched one by one", []string{"heap_1", "heap_2", "heap_3"}, []int64{10, 19, 28}, "Go heap profile", true},
		{"named in another order", []string{"heap_3", "heap_1", "heap_2"}, []int64{28, 10, 19}, "Go heap profile", true},
		{"every ten steps", []string{"heap_10", "heap_20", "heap_30"}, []int64{10, 19, 28}, "Go heap profile", false},
		{"a word says that they are steps", []string{"step_1", "step_2", "step_3"}, []int64{10, 19, 28}, "Go heap profile", false},
		{"the clock speaks against it", []string{"heap_1", "heap_2", "heap_3"}, []int64{10, 30, 20}, "Go heap profile", false},
		{"a training's", []string{"heap_1", "heap_2", "heap_3"}, []int64{10, 19, 28}, "JAX", false},
		{"two", []string{"heap_1", "heap_2"}, []int64{10, 19}, "Go heap profile", false},
	} {
		var list []opened
		patterns := newNamePatterns()
		for i, name := range c.names {
			s := &snapshot.Snapshot{Producer: c.producer, Mark: snapshot.Mark{Step: snapshot.NoStep, Time: time.Unix(c.seconds[i], 0)}}
			list = append(list, patterns.opened(s, name))
		}
		note := setSteps(list)
		for _, o := range list {
			if clock := o.snapshot.Mark.Step == snapshot.NoStep; clock != c.clock || strings.Contains(note, "count the files") != c.clock {
				t.Errorf("%s: %s is of step %d; note %q", c.name, o.name, o.snapshot.Mark.Step, note)
			}
		}
	}
}
