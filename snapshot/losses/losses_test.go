package losses

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
)

func TestLossesAreReadWithAllTheirBits(t *testing.T) {
	got, err := Read(strings.NewReader(Header + "1,backward,0.30000000000000004\n2,backward,nan\n2,mark,-inf\n3,backward,0.1"))
	want := &snapshot.Losses{Backward: []snapshot.Loss{{Step: 1, Value: 0.30000000000000004}, {Step: 2, Value: math.NaN()}}, Marked: []snapshot.Loss{{Step: 2, Value: math.Inf(-1)}}}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" || err != nil {
		t.Errorf("%v (-want +got; the line without an end is left out)\n%s", err, diff)
	}
	if !Detect([]byte(Header)) || !Detect([]byte("step,")) || Detect([]byte("step,loss\n")) {
		t.Error("Detect")
	}
}

func TestWhatIsNoLossEndsTheFile(t *testing.T) {
	for name, line := range map[string]string{
		"no step": "x,backward,1\n", "no number": "2,backward,one\n", "no source": "2,forward,1\n", "fewer fields": "2,1\n", "more fields": "2,mark,1,1\n",
		"a long line": strings.Repeat("1", bounded.MaxRow+1),
	} {
		got, err := Read(strings.NewReader(Header + "1,backward,1\n" + line))
		if err == nil || !strings.HasPrefix(err.Error(), "line 3: ") || len(got.Backward) != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, text := range map[string]string{"empty": "", "other columns": "step,loss\n1,1\n"} {
		if got, err := Read(strings.NewReader(text)); err == nil || len(got.Backward) > 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := Read(strings.NewReader(Header + strings.Repeat("1,mark,1\n", bounded.MaxRows+1))); err == nil || len(got.Marked) > bounded.MaxRows {
		t.Errorf("%d lines: %v", len(got.Marked), err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(Header + "1,backward,0.5\n2,mark,nan\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, _ := Read(bytes.NewReader(text)); len(got.Backward)+len(got.Marked) > bytes.Count(text, []byte("\n")) {
			t.Errorf("more losses than lines: %+v", got)
		}
	})
}
