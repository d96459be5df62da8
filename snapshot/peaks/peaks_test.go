package peaks

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
)

func TestPeaksAreRead(t *testing.T) {
	got, err := Read(strings.NewReader(Header + "3,train,cuda:1,32,512,1048576\n4,,host:0,8,0,4096\n4,,host:0,2147483647,9007199254740992,8192\n5,,host:0,8"))
	want := []snapshot.Peak{
		{Step: 3, Phase: "train", Kind: snapshot.CUDA, Index: 1, Batch: 32, Length: 512, Bytes: 1 << 20},
		{Step: 4, Kind: snapshot.Process, Batch: 8, Bytes: 4096},
		{Step: 4, Kind: snapshot.Process, Batch: math.MaxInt32, Bytes: 8192}, // tokens are batch by length
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got; the line without an end is left out)\n%s", err, diff)
	}
	if !Detect([]byte(Header)) || !Detect([]byte("step,")) || Detect([]byte("step,source,loss\n")) {
		t.Error("Detect")
	}
}

func TestWhatIsNoPeakEndsTheFile(t *testing.T) {
	for name, line := range map[string]string{
		"no step": "x,,cuda:0,1,1,1\n", "no device": "1,,cuda,1,1,1\n", "below zero": "1,,cuda:0,-1,1,1\n", "no size": "1,,cuda:0,1,1,1e9\n", "too large": "1,,cuda:0,1,1,99999999999999999999\n", "more than there is": "1,,cuda:0,1,1,9007199254740992\n",
		"fewer fields": "1,,cuda:0,1,1\n", "more fields": "1,,cuda:0,1,1,1,1\n", "a long line": strings.Repeat("1", bounded.MaxRow+1),
	} {
		if got, err := Read(strings.NewReader(Header + "1,,cuda:0,1,1,1\n" + line)); err == nil || !strings.HasPrefix(err.Error(), "line 3: ") || len(got) != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := Read(strings.NewReader(Header + strings.Repeat("1,,cuda:0,1,1,1\n", maxPeaks+1))); err == nil || len(got) != maxPeaks {
		t.Errorf("%d lines: %v", len(got), err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(Header + "1,train,cuda:0,1,1,1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, _ := Read(bytes.NewReader(text)); len(got) > bytes.Count(text, []byte("\n")) {
			t.Errorf("more peaks than lines: %+v", got)
		}
	})
}
