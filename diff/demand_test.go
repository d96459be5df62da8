package diff

import (
	"math"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
)

func demandOf(t *testing.T, limit snapshot.Bytes, peaks ...snapshot.Peak) Demand {
	t.Helper()
	device := snapshot.Device{Kind: snapshot.CUDA, Limit: limit}
	for i := range peaks {
		peaks[i].Kind = snapshot.CUDA
	}
	out := (&Result{Last: &snapshot.Snapshot{Devices: []snapshot.Device{device}}, run: &snapshot.Run{Peaks: peaks}}).Demand()
	if len(out) != 1 {
		t.Fatalf("%d demands, want one", len(out))
	}
	return out[0]
}

// ofBatches are the peaks of batches.
func ofBatches(of func(batch int64) int64, batches ...int64) (out []snapshot.Peak) {
	for _, b := range batches {
		out = append(out, snapshot.Peak{Batch: b, Bytes: snapshot.Bytes(of(b))})
	}
	return out
}

func TestAPeakIsFittedToTheBatch(t *testing.T) {
	d := demandOf(t, 80*snapshot.GiB, ofBatches(func(b int64) int64 { return 2<<30 + b*3<<29 + b%3<<20 }, 8, 12, 16, 24, 32)...)
	if d.Why != "" || math.Abs(d.Fixed/(2<<30)-1) > 0.01 || math.Abs(d.Sample/(3<<29)-1) > 0.01 || d.Token != 0 {
		t.Fatalf("%+v", d)
	}
	if d.Next != (Input{64, 0}) || math.Abs(float64(d.Need)/(98<<30)-1) > 0.01 || d.NeedOff <= 0 || d.Fits < 51 || d.Fits > 52 {
		t.Errorf("%+v", d)
	}
}

// What a step takes whatever its input, as an optimizer's does, hides what small inputs add.
func TestTheLargerInputsTellWhereSmallOnesAreHidden(t *testing.T) {
	hidden := func(b int64) int64 { return max(6<<30+b<<13, 2<<30+b<<26) }
	d := demandOf(t, 0, ofBatches(hidden, 8, 16, 32, 48, 80, 96, 128, 160, 192)...)
	if d.Why != "" || d.Sizes != 9 || d.Fitted != 5 || d.Smallest.Batch != 80 || math.Abs(d.Fixed/(2<<30)-1) > 0.01 || math.Abs(d.Sample/(1<<26)-1) > 0.01 {
		t.Errorf("%+v", d)
	}
	if d := demandOf(t, 0, ofBatches(hidden, 8, 16, 32, 48, 80, 96)...); d.Why == "" || d.Sizes != 6 || d.Smallest.Batch != 8 {
		t.Errorf("%+v", d)
	}
}

func TestAPeakIsFittedToTokensAndSamples(t *testing.T) {
	var tokens, both []snapshot.Peak
	for _, in := range []Input{{4, 128}, {2, 512}, {8, 256}, {16, 256}, {8, 1024}, {16, 1024}} {
		at := snapshot.Peak{Batch: in.Batch, Length: in.Length, Bytes: snapshot.Bytes(1<<30 + in.Tokens()<<20)}
		tokens = append(tokens, at)
		at.Bytes += snapshot.Bytes(in.Batch << 29)
		both = append(both, at)
	}
	if d := demandOf(t, 0, tokens...); d.Why != "" || math.Abs(d.Token/(1<<20)-1) > 1e-6 || d.Sample != 0 || d.Next != (Input{32, 1024}) || d.Fits != 0 {
		t.Errorf("%+v", d)
	}
	if d := demandOf(t, 0, both...); d.Why != "" || math.Abs(d.Token/(1<<20)-1) > 1e-6 || math.Abs(d.Sample/(1<<29)-1) > 1e-6 || math.Abs(d.Fixed/(1<<30)-1) > 1e-6 {
		t.Errorf("%+v", d)
	}
}

func TestABatchThatDoesNotFitIsOneThatMayNeedNoLess(t *testing.T) {
	noisy := ofBatches(func(b int64) int64 { return 2<<30 + b*3<<29 + b%3<<29 }, 8, 12, 16, 24, 32, 40)
	d := demandOf(t, 80*snapshot.GiB, noisy...)
	off := float64(d.NeedOff) / float64(d.Next.Batch)
	needs := func(batch int64) float64 { return d.Fixed + float64(batch)*(d.Sample-off) }
	if d.Why != "" || d.Fits == 0 || needs(d.Fits) > 80<<30 || needs(d.Fits+1) <= 80<<30 || d.Fixed+float64(d.Fits)*d.Sample <= 80<<30 {
		t.Errorf("%+v", d)
	}
	if near := demandOf(t, d.Need-1<<20, noisy...); near.Fits != 0 {
		t.Errorf("%+v; the next may fit", near)
	}
}

func TestWhatVariesIsDoubled(t *testing.T) {
	for _, batch := range []int64{0, 8} {
		var peaks []snapshot.Peak
		for _, length := range []int64{128, 256, 512, 768, 1024} {
			at := Input{batch, length}
			peaks = append(peaks, snapshot.Peak{Batch: batch, Length: length, Bytes: snapshot.Bytes(8<<30 + at.Tokens()<<20)})
		}
		d := demandOf(t, 9*snapshot.GiB, peaks...)
		if want := (Input{batch, 2048}); d.Why != "" || d.Next != want || math.Abs(float64(d.Need)/float64(8<<30+want.Tokens()<<20)-1) > 0.01 || d.Fits != 0 {
			t.Errorf("%+v", d)
		}
	}
}

func TestABendIsPartOfWhatTheForecastMayBeOff(t *testing.T) {
	bent := func(b int64) int64 { return 1<<30 + b<<26 + b*b<<14 }
	for _, length := range []int64{0, 512} {
		peaks := ofBatches(bent, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160)
		for i := range peaks {
			peaks[i].Length = length
		}
		if d := demandOf(t, 0, peaks...); d.Why != "" || math.Abs(float64(d.Need)-float64(bent(320))) > float64(d.NeedOff) {
			t.Errorf("length %d: %+v", length, d)
		}
	}
}

func TestWhatIsNoLineIsNotFitted(t *testing.T) {
	line := func(b int64) int64 { return 1<<30 + b<<20 }
	for want, peaks := range map[string][]snapshot.Peak{
		"takes 5 sizes":           ofBatches(line, 100, 200, 400, 800),
		"less than 1.5 times":     ofBatches(line, 100, 110, 120, 130, 140),
		"almost the same":         ofBatches(func(b int64) int64 { return 1<<30 + b }, 100, 200, 400, 800, 1600),
		"not follow the size":     ofBatches(func(b int64) int64 { return b * b << 16 }, 8, 16, 32, 64, 128), // attention without a fused kernel
		"not known well":          ofBatches(func(b int64) int64 { return 1<<30 + b<<26 + b*b<<18 }, 8, 32, 64, 96, 128, 160),
		"is known of all":         append(ofBatches(line, 100, 200, 400, 800, 1600), snapshot.Peak{Length: 512, Bytes: 1 << 31}),
		"change only together":    {{Batch: 1, Length: 32, Bytes: 1 << 20}, {Batch: 2, Length: 16, Bytes: 2 << 20}, {Batch: 4, Length: 8, Bytes: 3 << 20}, {Batch: 8, Length: 4, Bytes: 4 << 20}, {Batch: 16, Length: 2, Bytes: 5 << 20}, {Batch: 32, Length: 1, Bytes: 6 << 20}},
		"falls where the input g": {{Batch: 64, Bytes: 1 << 20}, {Batch: 32, Bytes: 2 << 20}, {Batch: 20, Bytes: 19 << 17}, {Batch: 8, Bytes: 22 << 17}, {Batch: 4, Bytes: 23 << 17}},
	} {
		if d := demandOf(t, 0, peaks...); !strings.Contains(d.Why, want) {
			t.Errorf("%q, want %q: %+v", d.Why, want, d)
		}
	}
}

func TestTheHighestPhaseTellsOfADevice(t *testing.T) {
	peaks := ofBatches(func(b int64) int64 { return 1<<30 + b<<28 }, 8, 16, 24, 32, 40)
	for i := range peaks {
		peaks[i].Phase = "train"
	}
	eval := ofBatches(func(b int64) int64 { return 1 << 20 * b }, 8, 16)
	for i := range eval {
		eval[i].Phase = "eval"
	}
	export := snapshot.Peak{Phase: "export", Batch: 1, Bytes: 1 << 40}
	if d := demandOf(t, 0, append(append(eval, peaks...), export)...); d.Phase != "train" || d.Sizes != 5 || d.Why != "" {
		t.Errorf("%+v", d)
	}
}

func TestALeakIsNotTakenForTheInput(t *testing.T) {
	peaks := ofBatches(func(b int64) int64 { return 1<<30 + b<<28 }, 8, 16, 24, 32, 40)
	leakOn := func(kind snapshot.DeviceKind) *Result {
		return &Result{Findings: []Finding{{Verdict: Leak, Rows: []*Row{{Device: snapshot.Device{Kind: kind}}}}}}
	}
	grows := &Result{Reserves: []Reserve{{Meter: cause.Host}}}
	possible := leakOn(snapshot.CUDA)
	possible.Findings[0].Verdict = Inconclusive
	for _, c := range []struct {
		of    snapshot.DeviceKind
		r     *Result
		leaks bool
	}{
		{snapshot.CUDA, leakOn(snapshot.CUDA), true},
		{snapshot.CUDA, leakOn(snapshot.CPU), false},
		{snapshot.CUDA, possible, false},
		{snapshot.CUDA, grows, false},
		{snapshot.Process, leakOn(snapshot.CPU), true},
		{snapshot.Process, leakOn(snapshot.CUDA), false},
		{snapshot.Process, grows, true},
	} {
		for i := range peaks {
			peaks[i].Kind = c.of
		}
		c.r.Last, c.r.run = &snapshot.Snapshot{Devices: []snapshot.Device{{Kind: c.of}}}, &snapshot.Run{Peaks: peaks}
		if d := c.r.Demand()[0]; (d.Why != "") != c.leaks || c.leaks && !strings.Contains(d.Why, "leaks") {
			t.Errorf("%s: %+v", c.of, d)
		}
	}
}
