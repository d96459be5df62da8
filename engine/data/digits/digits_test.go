package digits_test

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine/data"
	"github.com/memdiag/memdiag/engine/data/digits"
)

func load(t *testing.T) (training, test *digits.Set) {
	t.Helper()
	training, test, err := digits.Load()
	if err != nil {
		t.Fatal(err)
	}
	return training, test
}

func example(t *testing.T, s *digits.Set, i int) (image []float32, label int32) {
	t.Helper()
	e, err := s.Example(i)
	if err != nil {
		t.Fatal(err)
	}
	return e[0].Floats, e[1].Ints[0]
}

func TestTheDataSetIsWhole(t *testing.T) {
	training, test := load(t)
	if training.Len() != 1438 || test.Len() != 359 {
		t.Errorf("%d images to train on, %d held out", training.Len(), test.Len())
	}
	// What the data set's description says of each digit.
	want := [digits.Classes]int{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}
	var count [digits.Classes]int
	for _, s := range []*digits.Set{training, test} {
		for i := range s.Len() {
			image, label := example(t, s, i)
			count[label]++
			for _, x := range image {
				if x < 0 || x > 1 || x*16 != float32(int(x*16)) {
					t.Fatalf("image %d has the pixel %g", i, x)
				}
			}
		}
	}
	if count != want {
		t.Errorf("digits %v, want %v", count, want)
	}
}

// TestTheFirstImageIsAZero draws it, as no number says it better.
func TestTheFirstImageIsAZero(t *testing.T) {
	training, test := load(t)
	image, label := example(t, training, 0)
	var b strings.Builder
	for i, x := range image {
		b.WriteByte(" .:#"[min(3, int(x*4))])
		if i%8 == 7 {
			b.WriteByte('\n')
		}
	}
	const want = "" +
		"  .#:   \n" +
		"  ##:#. \n" +
		"  #  :: \n" +
		" .#  :: \n" +
		" .:  :: \n" +
		" .:  #. \n" +
		"  #.:#  \n" +
		"  .#:   \n"
	if b.String() != want || label != 0 {
		t.Errorf("label %d:\n%s", label, b.String())
	}
	// The fifth image, a four, is the first that is held out.
	if _, label := example(t, test, 0); label != 4 {
		t.Errorf("the first image held out is a %d", label)
	}
}

func TestItIsADataset(t *testing.T) {
	_, test := load(t)
	n := 0
	for b, err := range data.Pass(test, data.Options{Batch: 100, Partial: true}) {
		if err != nil {
			t.Fatal(err)
		}
		n += b.Arrays[0].Shape[0]
		if b.Arrays[0].Shape[1] != digits.Pixels || len(b.Arrays[1].Shape) != 1 {
			t.Errorf("arrays of %v and %v", b.Arrays[0].Shape, b.Arrays[1].Shape)
		}
	}
	if n != 359 {
		t.Errorf("a pass goes through %d", n)
	}
}
