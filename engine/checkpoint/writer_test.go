package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// gate is a file that can be written when it is opened.
type gate struct {
	file
	open chan struct{}
}

func (g gate) Write(p []byte) (int, error) {
	<-g.open
	return g.file.Write(p)
}

// newWriter returns a writer whose files wait for the gate.
func newWriter(t *testing.T, staging Staging, d *mem.Device, open chan struct{}) *Writer {
	t.Helper()
	w, err := NewWriter(t.TempDir(), Options{Staging: staging, Background: engine.NewEager(cpu.New(1), d)})
	if err != nil {
		t.Fatal(err)
	}
	w.create = func(path string) (file, error) {
		f, err := createFile(path)
		return gate{f, open}, err
	}
	return w
}

var stagings = []struct {
	name    string
	staging Staging
	copies  int // on the device while a checkpoint is being written
}{
	{"while the training waits", Blocking, 0},
	{"from a copy on the host", OnHost, 0},
	{"from a copy on the device", OnDevice, 1},
}

func TestACheckpointIsTheStateAtItsSave(t *testing.T) {
	for _, c := range stagings {
		t.Run(c.name, func(t *testing.T) {
			o, d := enginetest.NewEager(t)
			parameter := o.Full(1, 8)
			defer parameter.Release()
			open := make(chan struct{})
			w := newWriter(t, c.staging, d, open)
			if c.staging == Blocking {
				close(open)
			}
			err := w.Save(o, State{Step: 3, Counters: map[string]uint64{"random": 4}, Tensors: []engine.Named{{Name: "w", Tensor: parameter}}})
			if err != nil {
				t.Fatal(err)
			}
			want := map[snapshot.Owners]int{snapshot.OwnedByUser: 1}
			if c.copies > 0 {
				want[snapshot.OwnedByCache] = c.copies
			}
			if got := enginetest.Owners(d); len(got) != len(want) || got[snapshot.OwnedByCache] != c.copies {
				t.Errorf("while it is written, %v is live, want %v", got, want)
			}
			scope := o.Begin()
			o.Assign(parameter, o.Full(2)) // the next step
			scope.End()
			if c.staging != Blocking {
				if _, err := os.Stat(w.Path(3)); err == nil {
					t.Error("the file is there before it is whole")
				}
				close(open)
			}
			if err := w.Wait(); err != nil {
				t.Fatal(err)
			}
			if n := enginetest.Live(d); n != 1 {
				t.Errorf("%d blocks are live after it", n)
			}
			f, err := Read(w.Path(3))
			if err != nil {
				t.Fatal(err)
			}
			scope = o.Begin()
			defer scope.End()
			saved, _ := f.Upload(o, "w")
			if got := o.Floats(saved); got[0] != 1 || got[7] != 1 || f.Step != 3 || f.Counters["random"] != 4 {
				t.Errorf("step %d, counters %v, elements %v", f.Step, f.Counters, got)
			}
		})
	}
}

func TestOneCheckpointIsWrittenAndOneMoreIsStaged(t *testing.T) {
	o, d := enginetest.NewEager(t)
	parameter := o.Full(1, 8)
	defer parameter.Release()
	open := make(chan struct{})
	w := newWriter(t, OnDevice, d, open)
	saved := make(chan error)
	go func() {
		var errs []error
		for step := range int64(4) {
			errs = append(errs, w.Save(o, State{Step: step, Tensors: []engine.Named{{Name: "w", Tensor: parameter}}}))
		}
		saved <- errors.Join(append(errs, w.Wait())...)
	}()
	// The second is staged and waits for the first, and there it stays.
	for enginetest.Live(d) < 3 {
		runtime.Gosched()
	}
	time.Sleep(5 * time.Millisecond)
	if n := enginetest.Live(d); n != 3 {
		t.Errorf("%d blocks are live, want the parameter and two copies", n)
	}
	close(open)
	if err := <-saved; err != nil {
		t.Error(err)
	}
	if n := enginetest.Live(d); n != 1 {
		t.Errorf("%d blocks are live after it", n)
	}
	if steps, err := stepsIn(w.dir); err != nil || !slices.Equal(steps, []int64{0, 1, 2, 3}) {
		t.Errorf("there are checkpoints of %v, %v", steps, err)
	}
}

// broken is a file on a disk that is full, or gone.
type broken struct {
	file
	write, sync error
}

func (b broken) Write(p []byte) (int, error) {
	if b.write != nil {
		return 0, b.write
	}
	return b.file.Write(p)
}

func (b broken) Sync() error { return errors.Join(b.sync, b.file.Sync()) }

func TestACheckpointThatCannotBeWrittenLeavesTheOneBefore(t *testing.T) {
	full := errors.New("no space left")
	for _, fault := range []struct {
		name        string
		write, sync error
	}{{"a full disk", full, nil}, {"a disk that loses what it took", nil, full}} {
		for _, c := range stagings {
			t.Run(fault.name+", "+c.name, func(t *testing.T) {
				o, d := enginetest.NewEager(t)
				parameter := o.Full(1, 8)
				defer parameter.Release()
				open := make(chan struct{})
				close(open)
				w := newWriter(t, c.staging, d, open)
				save := func(value float32) error {
					defer o.Begin().End()
					o.Assign(parameter, o.Full(value))
					err := w.Save(o, State{Step: 1, Tensors: []engine.Named{{Name: "w", Tensor: parameter}}})
					return errors.Join(err, w.Wait())
				}
				if err := save(1); err != nil {
					t.Fatal(err)
				}
				whole := w.create
				w.create = func(path string) (file, error) {
					f, err := whole(path)
					return broken{f, fault.write, fault.sync}, err
				}
				if err := save(2); !errors.Is(err, full) || !strings.Contains(err.Error(), "checkpoint_1") {
					t.Errorf("got %v", err)
				}
				if names, err := filepath.Glob(filepath.Join(w.dir, "*")); err != nil || len(names) != 1 {
					t.Errorf("in the folder lie %v", names)
				}
				if entries, _ := os.ReadDir(w.dir); len(entries) != 1 {
					t.Errorf("in the folder lie %v", entries)
				}
				f, err := Read(w.Path(1))
				if err != nil {
					t.Fatal(err)
				}
				defer o.Begin().End()
				if saved, _ := f.Upload(o, "w"); o.Floats(saved)[0] != 1 {
					t.Error("the checkpoint before is another")
				}
				w.create = whole
				if err := save(3); err != nil {
					t.Errorf("after the fault: %v", err)
				}
				if n := enginetest.Live(d); n != 2 { // the parameter, and what was read
					t.Errorf("%d blocks are live", n)
				}
			})
		}
	}
}

func TestADeviceWithoutRoomForACopyKeepsNone(t *testing.T) {
	d := mem.NewDevice(mem.Host(), mem.Options{Limit: 2 * snapshot.MiB})
	o := engine.NewEager(cpu.New(1), d)
	parameters := []*engine.Tensor{o.Full(1, 1<<17), o.Full(1, 1<<18)} // 1.5 MiB
	w, err := NewWriter(t.TempDir(), Options{Staging: OnDevice, Background: engine.NewEager(cpu.New(1), d)})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Save(o, State{Tensors: []engine.Named{{Name: "a", Tensor: parameters[0]}, {Name: "b", Tensor: parameters[1]}}})
	if _, full := errors.AsType[*mem.OutOfMemoryError](err); !full || enginetest.Live(d) != 2 {
		t.Errorf("got %v; %d blocks are live", err, enginetest.Live(d))
	}
	for _, p := range parameters {
		p.Release()
	}
	if err := errors.Join(w.Wait(), d.Close()); err != nil {
		t.Error(err)
	}
}

func TestTheLastFewCheckpointsStay(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	w, err := NewWriter(filepath.Join(t.TempDir(), "new"), Options{Keep: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Latest(w.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder has the latest %v", err)
	}
	for _, other := range []string{"checkpoint_x.memckpt", "checkpoint_007.memckpt", "notes"} {
		if err := os.WriteFile(filepath.Join(w.dir, other), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		save int64
		want []int64
	}{
		{9, []int64{9}}, {10, []int64{9, 10}}, {11, []int64{10, 11}}, {100, []int64{11, 100}},
		{50, []int64{11, 50, 100}}, // gone back before 100, which stays
		{50, []int64{11, 50, 100}},
		{60, []int64{50, 60, 100}},
	} {
		if err := w.Save(o, State{Step: c.save}); err != nil {
			t.Fatal(err)
		}
		if got, err := stepsIn(w.dir); err != nil || !slices.Equal(got, c.want) {
			t.Fatalf("after step %d: %v, %v, want %v", c.save, got, err, c.want)
		}
	}
	if path, err := Latest(w.dir); err != nil || path != w.Path(100) {
		t.Errorf("the latest is %s, %v", path, err)
	}
	if entries, _ := os.ReadDir(w.dir); len(entries) != 3+3 {
		t.Errorf("files of others were touched: %v", entries)
	}
	for _, c := range []struct {
		broken int64
		hint   string
	}{{100, "the checkpoint before it is " + w.Path(60)}, {50, ""}} {
		if err := os.Truncate(w.Path(c.broken), 20); err != nil {
			t.Fatal(err)
		}
		_, err := Read(w.Path(c.broken))
		if fault, ok := errors.AsType[*snapshot.FormatError](err); !ok || fault.Hint != c.hint {
			t.Errorf("of a broken checkpoint of step %d the error is %v with the hint %q, want %q", c.broken, err, fault.Hint, c.hint)
		}
	}
}

func TestAWriterSaysWhatItCannotDo(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"an unknown staging", Options{Staging: 7}},
		{"staging on a device that it cannot compute on", Options{Staging: OnDevice}},
		{"fewer than no checkpoints", Options{Keep: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if w, err := NewWriter(t.TempDir(), c.o); err == nil {
				t.Errorf("got %v", w)
			}
		})
	}
}
