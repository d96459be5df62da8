package checkpoint_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/checkpoint"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/snapshot"
)

func encoded(t testing.TB, o engine.Ops, s checkpoint.State) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := checkpoint.Encode(&b, o, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(b []byte) (*checkpoint.File, error) {
	return checkpoint.Decode("c", bytes.NewReader(b), int64(len(b)))
}

func TestWhatIsSavedComesBack(t *testing.T) {
	o, d := enginetest.NewEager(t)
	rapid.Check(t, func(r *rapid.T) {
		defer o.Begin().End()
		names := rapid.StringMatching(`[a-zß.]{1,12}`)
		s := checkpoint.State{
			Step: rapid.Int64Min(0).Draw(r, "step"), Epoch: rapid.Int64Min(0).Draw(r, "epoch"),
			Counters: rapid.MapOf(names, rapid.Uint64()).Draw(r, "counters"),
		}
		var into []engine.Named
		for _, name := range rapid.SliceOfNDistinct(names, 0, 5, rapid.ID).Draw(r, "tensors") {
			dims := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(r, "dims")
			n := engine.ShapeOf(dims...).Elements()
			if rapid.Bool().Draw(r, "ints") {
				ints := rapid.SliceOfN(rapid.Int32(), n, n).Draw(r, "elements")
				s.Tensors = append(s.Tensors, engine.Named{Name: name, Tensor: o.FromInts(ints, dims...)})
				into = append(into, engine.Named{Name: name, Tensor: o.FromInts(make([]int32, n), dims...)})
				continue
			}
			floats := rapid.SliceOfN(rapid.Float32(), n, n).Draw(r, "elements")
			s.Tensors = append(s.Tensors, engine.Named{Name: name, Tensor: o.FromFloats(floats, dims...)})
			into = append(into, engine.Named{Name: name, Tensor: o.Full(0, dims...)})
		}
		f, err := decode(encoded(t, o, s))
		if err != nil {
			r.Fatal(err)
		}
		if f.Step != s.Step || f.Epoch != s.Epoch || len(f.Names()) != len(s.Tensors) {
			r.Fatalf("step %d, epoch %d, %v", f.Step, f.Epoch, f.Names())
		}
		if diff := cmp.Diff(s.Counters, f.Counters); diff != "" {
			r.Fatal(diff)
		}
		before := enginetest.Live(d)
		if err := f.Restore(o, into); err != nil {
			r.Fatal(err)
		}
		if after := enginetest.Live(d); after != before {
			r.Fatalf("restoring left %d blocks behind", after-before)
		}
		for i, n := range s.Tensors {
			made, ok := f.Upload(o, n.Name)
			if !ok || !same(o, made, n.Tensor) || !same(o, into[i].Tensor, n.Tensor) {
				r.Fatalf("%s: %v, %v, want %v", n.Name, made, into[i].Tensor, n.Tensor)
			}
		}
	})
}

// same compares shapes, and elements to the bit.
func same(o engine.Ops, a, b *engine.Tensor) bool {
	if a.Shape() != b.Shape() || a.DType() != b.DType() {
		return false
	}
	if a.DType() == engine.Int32 {
		return slices.Equal(o.Ints(a), o.Ints(b))
	}
	return slices.EqualFunc(o.Floats(a), o.Floats(b), func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func TestAViewIsSavedAsItIsSeen(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	defer o.Begin().End()
	seen := o.Permute(o.FromFloats([]float32{1, 2, 3, 4, 5, 6}, 2, 3), 1, 0)
	f, err := decode(encoded(t, o, checkpoint.State{Tensors: []engine.Named{{Name: "w", Tensor: seen}}}))
	if err != nil {
		t.Fatal(err)
	}
	w, _ := f.Upload(o, "w")
	if got := o.Floats(w); w.Shape() != engine.ShapeOf(3, 2) || !slices.Equal(got, []float32{1, 4, 2, 5, 3, 6}) {
		t.Errorf("got %v %v", w, got)
	}
}

func TestWhatCannotBeSavedOrRestoredIsNamed(t *testing.T) {
	o, d := enginetest.NewEager(t)
	defer o.Begin().End()
	w := o.Full(1, 2)
	f, err := decode(encoded(t, o, checkpoint.State{Tensors: []engine.Named{{Name: "w", Tensor: w}}}))
	if err != nil {
		t.Fatal(err)
	}
	other := o.Full(5, 2)
	for _, c := range []struct {
		name string
		do   func() error
		want string
	}{
		{"two tensors of one name", func() error {
			return checkpoint.Encode(&bytes.Buffer{}, o, checkpoint.State{Tensors: []engine.Named{{Name: "w", Tensor: w}, {Name: "w", Tensor: w}}})
		}, `two tensors have the name "w"`},
		{"a step below 0, which Latest would not find", func() error {
			return checkpoint.Encode(&bytes.Buffer{}, o, checkpoint.State{Step: -1})
		}, "step -1 of epoch 0: neither is below 0"},
		{"a tensor without a name", func() error {
			return checkpoint.Encode(&bytes.Buffer{}, o, checkpoint.State{Tensors: []engine.Named{{Tensor: w}}})
		}, "no name to save under"},
		{"a counter whose name is too long", func() error {
			return checkpoint.Encode(&bytes.Buffer{}, o, checkpoint.State{Counters: map[string]uint64{strings.Repeat("n", 1<<16): 1}})
		}, "no name to save under"},
		{"a tensor that is not in the file", func() error {
			return f.Restore(o, []engine.Named{{Name: "w", Tensor: other}, {Name: "b", Tensor: w}})
		}, `c: no tensor "b"`},
		{"a tensor of another shape", func() error {
			return f.Restore(o, []engine.Named{{Name: "w", Tensor: o.Full(0, 3)}})
		}, `tensor "w" is float32 [2], and is to be restored into float32 [3]`},
		{"a tensor of another type", func() error {
			return f.Restore(o, []engine.Named{{Name: "w", Tensor: o.FromInts([]int32{1, 2}, 2)}})
		}, `restored into int32 [2]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.do(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
	if got := o.Floats(other); got[0] != 5 {
		t.Error("a list that is not all there was restored in part")
	}
	if _, ok := f.Upload(o, "b"); ok {
		t.Error("a tensor that is not there was uploaded")
	}
	_ = d
}

// sample is a small file with one of everything.
func sample(t testing.TB) []byte {
	o, _ := enginetest.NewEager(t)
	defer o.Begin().End()
	return encoded(t, o, checkpoint.State{
		Step: 50, Epoch: 2, Counters: map[string]uint64{"random": 7, "batches": 50},
		Tensors: []engine.Named{{Name: "w", Tensor: o.FromFloats([]float32{1, -2, 3, 4, 5, 6}, 2, 3)}, {Name: "n", Tensor: o.FromInts([]int32{9})}},
	})
}

func TestEveryCutAndEveryChangedByteIsNoticed(t *testing.T) {
	whole := sample(t)
	for n := range whole {
		if _, err := decode(whole[:n]); !isFault(err) {
			t.Fatalf("the first %d bytes are read: %v", n, err)
		}
	}
	for at := range whole {
		b := slices.Clone(whole)
		b[at] ^= 0x40
		if _, err := decode(b); !isFault(err) {
			t.Fatalf("a change of byte %d is not noticed: %v", at, err)
		}
	}
	if _, err := decode(append(slices.Clone(whole), 0)); !isFault(err) {
		t.Errorf("a byte too many: %v", err)
	}
	if _, err := checkpoint.Decode("c", bytes.NewReader(whole), int64(len(whole))+5); !isFault(err) {
		t.Errorf("a file that became shorter: %v", err)
	}
}

func isFault(err error) bool {
	_, ok := errors.AsType[*snapshot.FormatError](err)
	return ok
}

// A folder under the name of a checkpoint once was the latest, and could not be
// read.
func TestAFolderIsNoCheckpoint(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "checkpoint_99"+checkpoint.Ending), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Latest(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("latest of a folder alone: %v", err)
	}
	path := filepath.Join(dir, "checkpoint_50"+checkpoint.Ending)
	if err := os.WriteFile(path, sample(t), 0o666); err != nil {
		t.Fatal(err)
	}
	if got, err := checkpoint.Latest(dir); got != path || err != nil {
		t.Errorf("the latest is %s, %v", got, err)
	}
	if _, err := checkpoint.Read(dir); err == nil || !strings.Contains(err.Error(), "is a folder; Latest") {
		t.Errorf("got %v", err)
	}
}
