package checkpoint

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// Staging says where a state waits while it is being written.
type Staging uint8

// The ways to save. Behind the training's back, a state is copied first, so that
// the next step may change it: to the host, or on the device, where copying takes
// less of the training's time, and memory of the device until the file is there.
const (
	Blocking Staging = iota // Save returns when the file is on the disk
	OnHost
	OnDevice
)

// Options say how a Writer saves.
type Options struct {
	Staging Staging
	// Keep is how many checkpoints stay: an older one goes when a newer one is on the
	// disk. 0 is all.
	Keep int
	// Background computes on the training's device for the writer's own goroutine,
	// which OnDevice needs: an Ops serves one goroutine.
	Background engine.Ops
}

// Writer saves checkpoints of one run to a folder. At most one is being written,
// and one more waits while that is so: beside the training's own there are two
// copies of the state, never more. One goroutine uses a writer, and no other writes to the folder.
type Writer struct {
	dir     string
	options Options
	create  func(path string) (file, error)
	// writing carries the outcome of the checkpoint under way; nil while none is.
	writing chan error
}

// file is what a checkpoint is written to; tests put failing ones here.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

// NewWriter returns a writer to the folder, which is made where it is missing.
func NewWriter(dir string, o Options) (*Writer, error) {
	switch {
	case o.Staging > OnDevice:
		return nil, fmt.Errorf("there is no staging %d", o.Staging)
	case o.Staging == OnDevice && o.Background == nil:
		return nil, fmt.Errorf("staging on the device needs operations of its own in Options.Background")
	case o.Keep < 0:
		return nil, fmt.Errorf("%d checkpoints to keep", o.Keep)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	return &Writer{dir: dir, options: o, create: createFile}, nil
}

// createFile replaces what a process that died left under the temporary name.
func createFile(path string) (file, error) { return os.Create(path) }

// Path is where the checkpoint after so many steps lies.
func (w *Writer) Path(step int64) string {
	return filepath.Join(w.dir, "checkpoint_"+strconv.FormatInt(step, 10)+Ending)
}

// Save writes a checkpoint; one of the same step is replaced. Call it between two
// steps, with the operations of the training. Behind the training's back, it
// returns once the state is copied and the checkpoint before is on the disk; an
// error is that one's, and then nothing was saved.
func (w *Writer) Save(o engine.Ops, s State) error {
	if w.options.Staging == Blocking {
		return w.write(o, s)
	}
	staged, err := w.stage(o.Valid(), s)
	if err != nil {
		return fmt.Errorf("%s: %w", w.Path(s.Step), err)
	}
	if err := w.Wait(); err != nil {
		staged.release()
		return err
	}
	outcome := make(chan error, 1)
	w.writing = outcome
	go func() {
		err := w.writeStaged(staged)
		staged.release()
		outcome <- err
	}()
	return nil
}

// Phase saves what state returns at an interval of a training loop. state is called
// between two steps, when all temporaries are gone, and fills in all of State: its
// Step is the count of steps that are completed, which the caller keeps, since no
// one else tells. The barrier after a save is marked train.Checkpointing. Call
// Wait when the loop has ended, for the last file may still be on its way.
func (w *Writer) Phase(o engine.Ops, when train.Interval, state func() State) train.Phase {
	return train.Phase{Name: train.Checkpointing, When: when, Step: func(int64) (train.Metrics, error) {
		return train.Metrics{}, w.Save(o, state())
	}}
}

// Wait returns when nothing is being written any more, with the error of the last
// checkpoint. Call it before the device is closed.
func (w *Writer) Wait() error {
	if w.writing == nil {
		return nil
	}
	err := <-w.writing
	w.writing = nil
	return err
}

// staged is a state that the training changes no more: copies on the device, or
// the encoded file.
type staged struct {
	state   State
	encoded []byte
}

func (w *Writer) stage(o engine.Ops, s State) (*staged, error) {
	out := &staged{state: s}
	err := engine.Run(o, func(*engine.Scope) error {
		if w.options.Staging == OnHost {
			var b buffer
			err := Encode(&b, o, s)
			out.encoded = b
			return err
		}
		copies := make([]engine.Named, len(s.Tensors))
		for i, n := range s.Tensors {
			copies[i] = engine.Named{Name: n.Name, Tensor: o.Copy(n.Tensor)}
		}
		// The other goroutine's queue does not know of this one's work.
		if err := o.Sync(); err != nil {
			return err
		}
		for _, c := range copies {
			c.Tensor.Own(snapshot.OwnedByCache)
		}
		out.state.Tensors = copies
		return nil
	})
	return out, err
}

// buffer is a file in memory.
type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// release gives copies on the device back.
func (s *staged) release() {
	if s.encoded == nil {
		for _, n := range s.state.Tensors {
			n.Tensor.Release()
		}
	}
}

func (w *Writer) writeStaged(s *staged) error {
	if s.encoded == nil {
		return w.write(w.options.Background, s.state)
	}
	return w.fill(s.state.Step, func(out io.Writer) error {
		_, err := out.Write(s.encoded)
		return err
	})
}

func (w *Writer) write(o engine.Ops, s State) error {
	return w.fill(s.Step, func(out io.Writer) error {
		return engine.Run(o, func(*engine.Scope) error { return Encode(out, o, s) })
	})
}

// fill brings a checkpoint to the disk under a temporary name, then under its
// own, and then drops old ones. On error, what was under its name is as it was.
func (w *Writer) fill(step int64, contents func(io.Writer) error) error {
	path := w.Path(step)
	temporary := filepath.Join(w.dir, "."+filepath.Base(path)+".tmp")
	f, err := w.create(temporary)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(f, 64<<10)
	if err = contents(buffered); err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("%s: %w", path, err)
	}
	return cmp.Or(syncDir(w.dir), w.drop(step))
}

// syncDir makes a rename last. Windows can not sync a folder, and keeps renames
// without that.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return cmp.Or(d.Sync(), d.Close())
}

// drop removes checkpoints of earlier steps that are not to be kept. Those of
// later steps are of a run before which this one went back; they stay.
func (w *Writer) drop(newest int64) error {
	if w.options.Keep == 0 {
		return nil
	}
	steps, err := stepsIn(w.dir)
	if err != nil {
		return err
	}
	at, _ := slices.BinarySearch(steps, newest)
	for _, old := range steps[:max(0, at+1-w.options.Keep)] {
		if err := os.Remove(w.Path(old)); err != nil {
			return err
		}
	}
	return nil
}

// stepsIn lists the checkpoints of a folder, ascending; folders in it are none.
func stepsIn(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var steps []int64
	for _, e := range entries {
		name, ours := strings.CutPrefix(e.Name(), "checkpoint_")
		name, ends := strings.CutSuffix(name, Ending)
		step, err := strconv.ParseInt(name, 10, 64)
		if ours && ends && err == nil && strconv.FormatInt(step, 10) == name && !e.IsDir() {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// Latest returns the path of the checkpoint with the most steps in a folder. The
// error is fs.ErrNotExist where there is none.
func Latest(dir string) (string, error) {
	steps, err := stepsIn(dir)
	if err != nil {
		return "", err
	}
	if len(steps) == 0 {
		return "", fmt.Errorf("%s: no checkpoint: %w", dir, fs.ErrNotExist)
	}
	w := Writer{dir: dir}
	return w.Path(steps[len(steps)-1]), nil
}
