package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// write makes a file below dir, with the folders on the way.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// ours is a file of our own.
func ours(t *testing.T, step int64, rank int, producer string) string {
	t.Helper()
	var b strings.Builder
	if err := native.Encode(&b, &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}, Rank: rank, Producer: producer}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// torchJSON is a PyTorch snapshot with one live block that was allocated
// between the last two of so many optimizer steps.
func torchJSON(steps int) string {
	var annotations []string
	for i := range steps {
		at := 1_000_000 + 1000*i
		for j, stage := range []string{"START", "END"} {
			annotations = append(annotations, fmt.Sprintf(`{"stage":%q,"name":"Optimizer.step#SGD.step","device":0,"time_us":%d}`, stage, at+j))
		}
	}
	born := 1_000_000 + 1000*(steps-1) - 500
	frames := `"frames":[{"filename":"train.py","name":"forward","line":3}]`
	return fmt.Sprintf(`{"segments":[{"device":0,"address":65536,"total_size":2097152,"stream":0,"segment_type":"small","blocks":[
		{"address":65536,"size":512,"requested_size":500,"state":"active_allocated",%s},
		{"address":66048,"size":2096640,"requested_size":0,"state":"inactive","frames":[]}]}],
		"device_traces":[[{"action":"alloc","addr":65536,"size":500,"stream":0,"time_us":%d,%s}]],
		"external_annotations":[%s]}`, frames, born, frames, strings.Join(annotations, ","))
}

// toldJSON is a PyTorch snapshot in whose header the program told its step.
func toldJSON(step int) string {
	return strings.TrimSuffix(torchJSON(0), "}") + fmt.Sprintf(`,"memdiag":{"step":%d}}`, step)
}

// newRun records an empty run.
func newRun(t *testing.T, dir string, started time.Time, steps ...int64) string {
	t.Helper()
	w, err := rundir.Create(dir, snapshot.Info{Workload: "test", Started: started})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if err := w.WriteSnapshot(step, &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}}); err != nil {
			t.Fatal(err)
		}
	}
	log, err := w.OpenSeries(nil)
	if err != nil {
		t.Fatal(err)
	}
	for step := range int64(3) {
		if err := log.AppendPoint(snapshot.Point{Mark: snapshot.Mark{Step: step}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(0, started.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	return dir
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func steps(run *snapshot.Run) (list []int64) {
	for _, s := range run.Snapshots {
		list = append(list, s.Mark.Step)
	}
	return list
}

func TestOpenTellsTheFormatByContentNotByName(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(write(t, dir, "a.pickle", ours(t, 7, 0, "us")))
	if err != nil || s.Producer != "us" || s.Mark.Step != 7 {
		t.Errorf("ours: %+v, %v", s, err)
	}
	s, err = Open(write(t, dir, "b.memdiag", torchJSON(2)))
	if err != nil || s.Producer != "PyTorch" || len(s.Sites()) != 1 {
		t.Errorf("PyTorch's: %+v, %v", s, err)
	}
}

func TestOpenSaysWhyItCannotRead(t *testing.T) {
	dir := t.TempDir()
	cut := ours(t, 7, 0, "")
	newRun(t, filepath.Join(dir, "run"), noon, 0)
	for name, c := range map[string]struct {
		path, want string
		format     bool
	}{
		"text":                                  {write(t, dir, "notes.txt", "hello"), "notes.txt: not a snapshot in a format that memdiag reads", true},
		"an empty file":                         {write(t, dir, "empty", ""), "an empty file", true},
		"a heap profile of an old Go":           {write(t, dir, "heap.txt", "heap profile: 1: 8 [1: 8] @ heap/1048576\n1: 8 [1: 8] @ 0x1\n"), "a heap profile as text that tells addresses", true},
		"goroutines":                            {write(t, dir, "goroutine.txt", "goroutine profile: total 7\n3 @ 0x43\n"), "stacks of Go's goroutines", true},
		"goroutines one by one":                 {write(t, dir, "goroutines.txt", "goroutine 530 [running]:\nmain.main()\n"), "stacks of Go's goroutines", true},
		"gperftools' profile of time":           {write(t, dir, "cpu.prof", strings.Repeat("\x00", 8)+"\x03"+strings.Repeat("\x00", 15)+"\x10\x27"+strings.Repeat("\x00", 14)), "a profile of processor time, as gperftools", true},
		"Firefox's profile":                     {write(t, dir, "profile.json", `{"meta":{"categories":[{"name":"Other"}]}}`), "a profile of processor time", true},
		"ms_print's":                            {write(t, dir, "massif.print", strings.Repeat("-", 80)+"\nCommand:            kate\nMassif arguments:   (none)\nms_print arguments: massif.out\n"), "what ms_print prints", true},
		"memcheck's report":                     {write(t, dir, "memcheck.txt", "==26241== Memcheck, a memory error detector\n==26241== Command: ./leak\n"), "a report of valgrind's memcheck", true},
		"memcheck's report as XML":              {write(t, dir, "memcheck.xml", "<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n<preamble>\n  <line>Memcheck, a memory error detector</line>\n"), "a report of valgrind's memcheck", true},
		"what speedscope shows":                 {write(t, dir, "memray.speedscope.json", `{"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {`), "stacks for speedscope", true},
		"memray's statistics":                   {write(t, dir, "stats.json", "{\n  \"total_num_allocations\": 1182,\n"), "memray's statistics", true},
		"lists in lists":                        {write(t, dir, "lists.json", "[[[[[[[["), "not a snapshot in a format that memdiag reads", true},
		"torch.profiler's timeline":             {write(t, dir, "timeline.json", "[[1795336356090708, 1795336356090708], [[0, 8]]]"), "memory timeline, which has no stacks", true},
		"a table compressed twice":              {write(t, dir, "memray_30.csv.gz.gz", string(packed(t, "gzip", packed(t, "gzip", []byte("allocator,num_allocations"))))), "compressed twice", true},
		"a snapshot compressed by gzip in zstd": {write(t, dir, "twice.zst", string(packed(t, "zstd", packed(t, "gzip", []byte("a table"))))), "compressed twice", true},
		"a snapshot of ours in gzip":            {write(t, dir, "snapshot_7.memdiag.gz", string(packed(t, "gzip", []byte(cut)))), "it is compressed inside already", true},
		"a zip archive":                         {write(t, dir, "run.zip", "PK\x03\x04\x14\x00\x00\x00\x08\x00snapshot_1.pickle"), "a zip archive", true},
		"what nsys exports":                     {write(t, dir, "run.sqlite", "SQLite format 3\x00\x10\x00"), "a database", true},
		"heaptrack's recording of nothing":      {write(t, dir, "heaptrack_10", "\n# strings: 0\n# ips: 0\n"), "a recording of heaptrack with nothing in it", true},
		"memray's recording":                    {write(t, dir, "memray.bin", "\x04\x22\x4d\x18\x40\x40\xc0\xef\x3d\x00\x00\xf9\x05memray\x00\r"), "a recording of memray", true},
		"a script that names memray":            {write(t, dir, "run.py", "import memray\n"), "run.py: a program, not a run", true},
		"a file compressed by xz":               {write(t, dir, "a.csv.xz", "\xfd7zXZ\x00\x00\x04"), "compressed by xz", true},
		"a file compressed by bzip2":            {write(t, dir, "a.csv.bz2", "BZh91AY&SY"), "compressed by bzip2", true},
		"half a file":                           {write(t, dir, "half", cut[:len(cut)/2]), "cut short", true},
		"a series":                              {filepath.Join(dir, "run", "series.memdiag"), "counters of a run", true},
		"a compressed file cut to its head":     {write(t, dir, "head.gz", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"), "ends before anything of it can be unpacked", true},
		"a folder":                              {dir, "a folder, not a snapshot", false},
		"nothing at all":                        {filepath.Join(dir, "nothing"), "no such file", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.path)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			var f *snapshot.FormatError
			if errors.As(err, &f) != c.format {
				t.Errorf("got a %T", err)
			}
		})
	}
}

// Such a file was read, and its sums overflowed: a leak of -6 B a step.
func TestASnapshotOfOursWithAbsurdFiguresIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		step         int64
		sizes, asked []snapshot.Bytes
		counts       []int64
		want         string // "" where it is read
	}{
		"blocks without a size":           {0, []snapshot.Bytes{0, 0}, []snapshot.Bytes{0, 0}, nil, ""},
		"sums that just fit":              {0, []snapshot.Bytes{1 << 56, 1 << 56}, []snapshot.Bytes{0, 0}, nil, ""},
		"sums larger than memory":         {0, []snapshot.Bytes{1 << 56, 1<<56 + 1}, []snapshot.Bytes{0, 0}, nil, "more than 128 PiB"},
		"a negative size":                 {0, []snapshot.Bytes{8, -5}, []snapshot.Bytes{8, 0}, nil, "row 1 of the blocks has 1 of -5 bytes"},
		"a negative size asked for":       {0, []snapshot.Bytes{8, 8}, []snapshot.Bytes{8, -1}, nil, "-1 of them requested"},
		"sizes whose sum overflows":       {0, []snapshot.Bytes{1 << 61, 1 << 61}, []snapshot.Bytes{0, 0}, nil, "more than 128 PiB"},
		"what was asked for overflows":    {0, []snapshot.Bytes{0, 0}, []snapshot.Bytes{1 << 61, 1 << 61}, nil, ""}, // it is not believed
		"a block of nearly 2^63":          {0, []snapshot.Bytes{1<<63 - 1, 0}, []snapshot.Bytes{0, 0}, nil, "more than 128 PiB"},
		"a negative number of blocks":     {0, []snapshot.Bytes{8, 8}, []snapshot.Bytes{8, 8}, []int64{1, -3}, "has -3 of 8 bytes"},
		"numbers of blocks that overflow": {0, []snapshot.Bytes{8, 8}, []snapshot.Bytes{8, 8}, []int64{1 << 61, 1 << 61}, "more than 2^57"},
		"a step before the first":         {-5, nil, nil, nil, "step -5"},
		"the last step of all integers":   {1<<63 - 1, nil, nil, nil, "step 9223372036854775807"},
	} {
		t.Run(name, func(t *testing.T) {
			n := len(c.sizes)
			s := &snapshot.Snapshot{
				Mark: snapshot.Mark{Step: c.step}, Devices: []snapshot.Device{{Kind: snapshot.CPU}}, Segments: []snapshot.Segment{{NumBlocks: n}},
				Blocks: snapshot.Blocks{
					Segment: make([]int32, n), Address: make([]uint64, n), Size: c.sizes, Requested: c.asked,
					State: make([]snapshot.State, n), Stack: make([]snapshot.StackID, n), Count: c.counts,
				},
			}
			var b strings.Builder
			if err := native.Encode(&b, s); err != nil {
				t.Fatal(err)
			}
			_, err := Open(write(t, t.TempDir(), "snapshot_7.memdiag", b.String()))
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var f *snapshot.FormatError
			if !errors.As(err, &f) || !strings.Contains(f.Reason, c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// Such births lie after the end of every run, so that whatever grows had stopped: a leak was called bounded.
func TestASnapshotOfOursWithBlocksOfTheFutureIsRefused(t *testing.T) {
	for step, want := range map[int64]bool{snapshot.NoStep: true, 9: false, 10: true, 11: true} {
		s := &snapshot.Snapshot{
			Mark: snapshot.Mark{Step: step}, Devices: []snapshot.Device{{Kind: snapshot.CPU}}, Segments: []snapshot.Segment{{NumBlocks: 1}},
			Blocks: snapshot.Blocks{
				Segment: []int32{0}, Address: []uint64{1}, Size: []snapshot.Bytes{8}, Requested: []snapshot.Bytes{8},
				State: make([]snapshot.State, 1), Stack: make([]snapshot.StackID, 1), BirthStep: []int64{10}, BirthTime: []int64{0},
			},
		}
		var b strings.Builder
		if err := native.Encode(&b, s); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(write(t, t.TempDir(), "snapshot_7.memdiag", b.String())); (err == nil) != want {
			t.Errorf("at step %d: %v", step, err)
		}
	}
}

// What is said of each device grows with their square: 100,000 took minutes.
func TestDevicesAreAsManyAsAMachineHas(t *testing.T) {
	for devices, want := range map[int]bool{16: true, 5000: false} {
		var b strings.Builder
		if err := native.Encode(&b, &snapshot.Snapshot{Devices: make([]snapshot.Device, devices)}); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(write(t, t.TempDir(), "snapshot_7.memdiag", b.String())); (err == nil) != want {
			t.Errorf("%d devices: %v", devices, err)
		}
	}
}

func TestARunOfOursIsReadInTheOrderOfItsSteps(t *testing.T) {
	dir := newRun(t, filepath.Join(t.TempDir(), "run"), noon, 100, 0, 9, 50)
	write(t, dir, "truth.json", `{"leaks":[]}`)
	write(t, dir, "plot.png", "\x89PNG\r\n\x1a\n")
	write(t, dir, "converted.memdiag", ours(t, 50, 0, ""))
	write(t, dir, ".snapshot_150.memdiag.tmp", "half of it")
	write(t, dir, "other/snapshot_1.memdiag", ours(t, 1, 0, ""))
	run, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int64{0, 9, 50, 100}, steps(run)); d != "" {
		t.Error(d)
	}
	if run.Path != dir || run.Info.Workload != "test" || run.Series == nil || len(run.Series.Points) != 3 {
		t.Errorf("%+v", run)
	}
	if len(run.Notes) > 0 {
		t.Errorf("notes: %q", run.Notes)
	}
	var read []string
	for _, f := range run.Files {
		read = append(read, filepath.Base(f))
	}
	if d := cmp.Diff([]string{"run.json", "series.memdiag", "snapshot_0.memdiag", "snapshot_9.memdiag", "snapshot_50.memdiag", "snapshot_100.memdiag"}, read); d != "" {
		t.Error(d)
	}
	for _, s := range run.Snapshots {
		if s.Stacks != run.Snapshots[0].Stacks {
			t.Error("tables of stacks differ")
		}
	}
}

func TestWhatARunLacksIsNoted(t *testing.T) {
	cut := ours(t, 7, 0, "")
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
		left  int
	}{
		"a snapshot is cut short":              {func(t *testing.T, dir string) { write(t, dir, "snapshot_7.memdiag", cut[:50]) }, "cut short", 2},
		"a snapshot is zeros":                  {func(t *testing.T, dir string) { write(t, dir, "snapshot_7.memdiag", strings.Repeat("\x00", 900)) }, "only zeros, no snapshot", 2},
		"a snapshot is of no format":           {func(t *testing.T, dir string) { write(t, dir, "snapshot_7.memdiag", "hello") }, "not a snapshot", 2},
		"the only snapshot of a rank is empty": {func(t *testing.T, dir string) { write(t, dir, "snapshot_7_rank3.memdiag", "") }, "no snapshot of rank 3 can be read", 2},
		"a pickle is cut short":                {func(t *testing.T, dir string) { write(t, dir, "snapshot_7.pickle", "\x80\x04}(") }, "snapshot_7.pickle: byte", 2},
		"the series is torn": {func(t *testing.T, dir string) {
			path := filepath.Join(dir, rundir.SeriesName)
			if err := os.Truncate(path, 60); err != nil {
				t.Fatal(err)
			}
		}, "no whole record", 2},
		"the series is no series":       {func(t *testing.T, dir string) { write(t, dir, rundir.SeriesName, "x") }, "without its series", 2},
		"run.json is cut short":         {func(t *testing.T, dir string) { write(t, dir, rundir.InfoName, `{"workload":`) }, "run.json: not read", 2},
		"run.json is endless":           {func(t *testing.T, dir string) { write(t, dir, rundir.InfoName, strings.Repeat(" ", maxInfo+1)) }, "not read", 2},
		"run.json is from the future":   {func(t *testing.T, dir string) { write(t, dir, rundir.InfoName, `{"schema_version":2}`) }, "schema version 2", 2},
		"the run was stopped":           {func(t *testing.T, dir string) { write(t, dir, rundir.InfoName, `{"schema_version":1}`) }, "has not finished", 2},
		"a snapshot is of another rank": {func(t *testing.T, dir string) { write(t, dir, "snapshot_8.memdiag", ours(t, 8, 1, "")) }, "snapshots of 2 ranks; rank 0 was read", 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newRun(t, filepath.Join(t.TempDir(), "run"), noon, 0, 50)
			c.spoil(t, dir)
			run, err := OpenRun(dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(run.Notes) != 1 || !strings.Contains(run.Notes[0], c.want) {
				t.Errorf("notes %q, want %q in one", run.Notes, c.want)
			}
			if len(run.Snapshots) != c.left {
				t.Errorf("%d snapshots, not %d", len(run.Snapshots), c.left)
			}
			if whole := name == "the run was stopped" || name == "run.json is from the future"; run.Partial == whole {
				t.Errorf("partial: %v", run.Partial)
			}
		})
	}
}

func TestARunWithoutReadableSnapshotsSaysWhy(t *testing.T) {
	cut := ours(t, 7, 0, "")
	for name, c := range map[string]struct {
		files map[string]string
		want  string
		hint  bool
	}{
		"an empty folder":       {nil, "no snapshots", true},
		"a recorded run":        {map[string]string{"run.json": `{"version": "v1", "finished": "2026-11-28T11:40:01Z", "notes": ["the disk was full", "so"]}`}, ": no snapshots: the disk was full; so", true},
		"a killed run":          {map[string]string{"run.json": `{"version": "v1"}`}, ": no snapshots: the run has not finished", true},
		"other files":           {map[string]string{"a.png": "\x89PNG", "truth.json": "{}"}, "no snapshot among 2 files: a.png, truth.json", true},
		"another tool's files":  {map[string]string{"a.png": "\x89PNG", "memcheck.txt": "==26241== Memcheck, a memory error detector\n"}, "no snapshot among 2 files: ", false},
		"broken snapshots":      {map[string]string{"a.memdiag": cut[:40], "b.txt": "b"}, "no snapshot can be read: ", false},
		"folders of other runs": {map[string]string{"x/run.json": "{}", "x/s.memdiag": cut, "y/z/run.json": "{}"}, "but runs below it", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for n, text := range c.files {
				write(t, dir, n, text)
			}
			_, err := OpenRun(dir)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v, want %q in it", err, c.want)
			}
			var f *snapshot.FormatError
			if h, ok := err.(interface{ Hint() string }); c.hint && (!ok || h.Hint() == "") || !c.hint && !errors.As(err, &f) {
				t.Errorf("got %#v", err)
			}
		})
	}
	if _, err := OpenRun(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not: %v", err)
	}
	if _, err := OpenRun(write(t, t.TempDir(), "a.memdiag", cut)); err == nil || !strings.Contains(err.Error(), "a file, not a run") {
		t.Errorf("a file: %v", err)
	}
}

func TestStepsOfLooseFilesComeFromTheirContentElseFromTheirNames(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		steps  []int64
		births []int64 // of each snapshot's first block; nil where not looked at
		notes  int
	}{
		"names alone, by number": {
			files: map[string]string{"snapshot_100.json": torchJSON(0), "snapshot_9.json": torchJSON(0), "snapshot_50.json": torchJSON(0)},
			steps: []int64{9, 50, 100},
		},
		"steps that the snapshots counted": {
			files:  map[string]string{"a.json": torchJSON(20), "b.json": torchJSON(10)},
			steps:  []int64{10, 20},
			births: []int64{9, 19},
		},
		"counted from the start of each recording": {
			files:  map[string]string{"iteration_100/rank0_memory_snapshot.json": torchJSON(5), "iteration_200/rank0_memory_snapshot.json": torchJSON(5)},
			steps:  []int64{100, 200},
			births: []int64{99, 199},
			notes:  1,
		},
		"told by the program, whatever the names say": {
			files: map[string]string{"snapshot_0.json": toldJSON(20), "snapshot_1.json": toldJSON(20), "snapshot_2.json": toldJSON(10)},
			steps: []int64{10, 20, 20},
		},
		"told by one program, counted in the other file": {
			files: map[string]string{"snapshot_100.json": toldJSON(7), "snapshot_200.json": torchJSON(5)},
			steps: []int64{5, 7},
		},
		"counted, but the first had no step yet": {
			files: map[string]string{"step_100.json": torchJSON(0), "step_110.json": torchJSON(10)},
			steps: []int64{100, 110},
			notes: 1,
		},
		"two optimizers in a step": {
			files:  map[string]string{"snapshot_0.json": torchJSON(0), "snapshot_10.json": torchJSON(20), "snapshot_20.json": torchJSON(40)},
			steps:  []int64{0, 10, 20},
			births: []int64{snapshot.NoStep, 9, 19}, // the first has none
			notes:  1,
		},
		"one call of an optimizer in four steps": {
			files:  map[string]string{"snapshot_40.json": torchJSON(10), "snapshot_80.json": torchJSON(20)},
			steps:  []int64{40, 80},
			births: []int64{36, 76},
			notes:  1,
		},
		"numbers of the files": {
			files:  map[string]string{"snapshot_0.json": torchJSON(10), "snapshot_1.json": torchJSON(20), "snapshot_2.json": torchJSON(30)},
			steps:  []int64{10, 20, 30},
			births: []int64{9, 19, 29},
		},
		"steps of two calls each": {
			files:  map[string]string{"step_1.json": torchJSON(2), "step_2.json": torchJSON(4)},
			steps:  []int64{1, 2},
			births: []int64{0, 1},
			notes:  1,
		},
		"neither, but a number": {
			files: map[string]string{"2.json": torchJSON(0), "1.json": torchJSON(0)},
			steps: []int64{snapshot.NoStep, snapshot.NoStep},
			notes: 1,
		},
		"one of them has none": {
			files: map[string]string{"a.json": torchJSON(0), "step-3.json": torchJSON(0)},
			steps: []int64{3},
			notes: 1,
		},
		"our own are believed": {
			files: map[string]string{"step_1.memdiag": ours(t, 40, 0, ""), "step_2.memdiag": ours(t, 30, 0, "")},
			steps: []int64{30, 40},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for n, text := range c.files {
				write(t, dir, n, text)
			}
			run, err := OpenRun(dir)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.steps, steps(run)); d != "" {
				t.Error(d)
			}
			for i, want := range c.births {
				if want == snapshot.NoStep {
					continue
				}
				if got := run.Snapshots[i].Blocks.BirthStep[0]; got != want {
					t.Errorf("snapshot %d: born in step %d, not %d", i, got, want)
				}
			}
			if len(run.Notes) != c.notes {
				t.Errorf("notes: %q", run.Notes)
			}
		})
	}
}

func TestOneFileHasTheStepAndRankOfItsNameUnlessItTellsThem(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		step       int64
		rank       int
	}{
		"none told":             {"snapshot_9_rank3.json", torchJSON(0), 9, 3},
		"none told, none named": {"snapshot.json", torchJSON(0), snapshot.NoStep, snapshot.NoRank},
		"told by the program":   {"snapshot_9.json", toldJSON(20), 20, snapshot.NoRank},
		"our own":               {"step_1.memdiag", ours(t, 40, 0, ""), 40, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(write(t, t.TempDir(), c.file, c.text))
			if err != nil {
				t.Fatal(err)
			}
			if s.Mark.Step != c.step || s.Rank != c.rank {
				t.Errorf("step %d, rank %d; want %d, %d", s.Mark.Step, s.Rank, c.step, c.rank)
			}
		})
	}
}

func TestASnapshotThatIsThereTwiceCountsOnce(t *testing.T) {
	dir := t.TempDir()
	dump := func(address, time int) string {
		return fmt.Sprintf(`{"segments": [{"device": 0, "address": %[1]d, "total_size": 512, "blocks": [{"address": %[1]d, "size": 512, "state": "active_allocated"}]}],
			"device_traces": [[{"action": "alloc", "addr": %[1]d, "size": 512, "time_us": %[2]d}]]}`, address, time)
	}
	write(t, dir, "snapshot_1.json", dump(512, 1000))
	write(t, dir, "snapshot_1.pickle", dump(512, 1000))
	write(t, dir, "snapshot_2.json", dump(512, 2000)) // another one, though it holds the same
	write(t, dir, "snapshot_2.pickle", dump(1024, 2000))
	run, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Snapshots) != 3 || len(run.Notes) != 1 || !strings.HasSuffix(run.Notes[0], "1 file left out, as another holds the same snapshot: snapshot_1.pickle") {
		t.Errorf("%d snapshots, notes %q", len(run.Snapshots), run.Notes)
	}
	broken := write(t, dir, "snapshot_3.json", "")
	_, err = OpenSnapshots(filepath.Join(dir, "snapshot_1.json"), filepath.Join(dir, "snapshot_2.json"), broken)
	var f *snapshot.FormatError
	if !errors.As(err, &f) || f.File != broken || f.Hint != "name the others alone: of a folder they are read without it" {
		t.Errorf("one of several that is broken: %#v", err)
	}
	run, err = OpenSnapshots(filepath.Join(dir, "snapshot_1.json"), filepath.Join(dir, "snapshot_2.json"), filepath.Join(dir, "snapshot_1.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Snapshots) != 2 || len(run.Files) != 2 || len(run.Notes) == 0 || !strings.HasPrefix(run.Notes[0], "1 file left out") {
		t.Errorf("named one by one: %d snapshots, notes %q", len(run.Snapshots), run.Notes)
	}
}

func TestOfSeveralRanksTheLowestIsRead(t *testing.T) {
	dir := t.TempDir()
	for rank := range 3 {
		for _, step := range []int{10, 20} {
			write(t, dir, fmt.Sprintf("iteration_%d/rank%d_memory_snapshot.json", step, rank+1), torchJSON(0))
		}
	}
	run, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int64{10, 20}, steps(run)); d != "" {
		t.Error(d)
	}
	for _, s := range run.Snapshots {
		if s.Rank != 1 {
			t.Errorf("rank %d", s.Rank)
		}
	}
	if len(run.Notes) != 1 || !strings.Contains(run.Notes[0], "files of 3 ranks") {
		t.Errorf("notes: %q", run.Notes)
	}
}

func TestNamesTellStepsAndRanks(t *testing.T) {
	p := newNamePatterns()
	for name, want := range map[string][2]int64{
		"iteration_40/rank7_memory_snapshot.pickle":      {40, 7},
		"iteration_40_exit/rank0_memory_snapshot.pickle": {40, 0},
		"torch_traces/rank3.12.memory_snapshot.pickle":   {12, 3},
		"memory_snapshot_rank0_step6.pkl":                {6, 0},
		"rank12_step1000.memdiag.pickle":                 {1000, 12},
		"snapshot_50.memdiag":                            {50, -1},
		"snapshot_50.pickle.gz":                          {50, -1},
		"snapshot-7":                                     {7, -1},
		"snapshot_oom_rank-4.pickle":                     {-1, 4},
		"oom_rank-4_snapshot.pickle":                     {-1, 4},
		"dump_snapshot.pickle":                           {-1, -1},
		"step_99999999999999999999.pickle":               {-1, -1},
		"step_9223372036854775807.pickle":                {-1, -1},
		"Step5/x.pickle":                                 {5, -1},
		"snapshot_50_rank3.pickle":                       {50, 3},
		"mem_epoch3_iter1110.pickle":                     {1110, -1},
		"my dump at step 200.pickle":                     {200, -1},
		"epoch=1-step=300.pickle":                        {300, -1},
		"out/it-12.pickle":                               {12, -1},
		"commit_7x.pickle":                               {-1, -1},
		"run_2026-11-20_10-00-00.pickle":                 {-1, -1},
		"20261120_100000_step_7.pickle":                  {7, -1},
		"snap.10.r3.pickle":                              {-1, 3},
		"snap_10.r3.pickle":                              {10, 3},
		"gpu1_iter10.pickle":                             {10, 1},
		"8gpu_iter10.pickle":                             {10, -1},
		"ngpu8_r2d2_iter10.pickle":                       {10, -1},
		"snapshot_20261120.pickle":                       {-1, -1},
	} {
		step, rank := p.read(name)
		if step != want[0] || int64(rank) != want[1] {
			t.Errorf("%s: step %d, rank %d", name, step, rank)
		}
	}
}

func TestNamesAreOrderedByTheirNumbers(t *testing.T) {
	order := []string{"", "a", "a1", "a2", "a10", "a10b", "a10b2", "b"}
	for i, a := range order {
		for j, b := range order {
			if got := compareNames(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
}

// Such a time could not be written as JSON.
func TestATimeBeyondAllYearsIsRefused(t *testing.T) {
	text := strings.Replace(torchJSON(3), `"time_us":1`, `"time_us":9223372036854775807,"was":1`, 1)
	_, err := Open(write(t, t.TempDir(), "snapshot_3.json", text))
	if f, ok := errors.AsType[*snapshot.FormatError](err); !ok || f.Reason != "it tells of the year 294247" {
		t.Errorf("got %v", err)
	}
}
