package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// halfSeen is a run that keeps 1 KiB a step, of which each step up to 40 was watched, then one
// in four; what the others made is counted with the last that was seen.
func halfSeen() *snapshot.Run {
	stacks := snapshot.NewStacks()
	keep := stacks.InternFrames([]snapshot.Frame{{Function: "keep", File: "train.py", Line: 7}})
	run := &snapshot.Run{}
	for step := int64(0); step <= 200; step += 20 {
		b := newSnapshot(stacks, step, 200*snapshot.KiB)
		watched := int64(0)
		for born := range step {
			if born >= 40 && born%4 != 0 {
				continue
			}
			watched++
			n := int64(1)
			if born+4 >= step && step > 40 {
				n += step - watched // the last row stands for all that nobody saw
			}
			b.block(keep, snapshot.Live, snapshot.Bytes(n)*snapshot.KiB, snapshot.Bytes(n)*snapshot.KiB, born)
			b.s.Blocks.Count = append(b.s.Blocks.Count, n)
		}
		if b.s.Blocks.Count == nil {
			b.s.Blocks.Count = []int64{}
		}
		run.Snapshots = append(run.Snapshots, b.s)
	}
	return run
}

func TestBirthsThatNobodySawAreDrawnAsDoubt(t *testing.T) {
	run := halfSeen()
	last := run.Snapshots[len(run.Snapshots)-1]
	series := series.Collect(run)
	site := last.Sites()[0]
	leaks := leakSites{deviceName(last.Devices[0]) + " " + hashText(site.Hash): struct{}{}}
	v := agesViewOf(last, leaks, series)
	if v == nil || len(v.Columns) != 40 {
		t.Fatalf("got %+v, want 40 columns", v)
	}
	for i, c := range v.Columns {
		var height float64
		for _, bar := range c.Bars {
			height += bar.Height
		}
		hatched := c.Bars[len(c.Bars)-1].Class == "leak unseen"
		if height < 0.75*float64(v.Height) || c.Cut || hatched != (i >= 8) {
			t.Errorf("column %d, of steps %d to %d, is %+v: want all of about one height, hatched from step 40 on", i, 5*i, 5*i+4, c)
		}
	}
	if !strings.Contains(v.Unseen, "between the snapshots around them") {
		t.Errorf("the page says %q", v.Unseen)
	}
	for name, o := range map[string]TextOptions{"with its run": {Run: series}, "alone": {}} {
		text := strings.Join(strings.Fields(string(rendered(t, func(b *bytes.Buffer) error { return Show(b, last, o) }))), " ")
		for _, want := range []string{"steps 0 to 49 50 50.0 KiB █████████████████▒▒▒", "steps 150 to 200 50 50.0 KiB █████▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒", "▒ estimated: not every step was recorded"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s the text lacks %q:\n%s", name, want, text)
			}
		}
	}
	json := string(rendered(t, func(b *bytes.Buffer) error { return ShowJSON(b, last, TextOptions{Top: 1, Run: series}) }))
	if !strings.Contains(json, `"unseen_births"`) || !strings.Contains(json, `"to": 60,`) {
		t.Errorf("JSON does not bound what nobody saw:\n%s", json)
	}
}

func TestASmallLeakIsSeenBesideTheWeights(t *testing.T) {
	r := pyramidResult(t)
	v := agesViewOf(r.Last, leaksOf(r), nil)
	first := v.Columns[0]
	if !first.Cut || !strings.Contains(v.Caption, "are cut") {
		t.Errorf("8 MiB of weights beside 1 MiB of the leak a column: %+v, %s", first, v.Caption)
	}
	if bar := v.Columns[5].Bars[0]; bar.Class != "leak" || bar.Height < 20 || bar.Y+bar.Height != float64(v.Height) {
		t.Errorf("the leak's bar is %+v", bar)
	}
}

func TestBlocksOutsideOfTheirSegmentHaveNoMap(t *testing.T) {
	r := pyramidResult(t)
	if n := len(mapViews(r.Last, nil)); n != 1 {
		t.Fatalf("%d maps", n)
	}
	for i := range r.Last.Blocks.Address {
		r.Last.Blocks.Address[i] = uint64(i) // a handle, as of PyTorch's storages on the CPU
	}
	if n := len(mapViews(r.Last, nil)); n != 0 {
		t.Error("a map is drawn of blocks that lie elsewhere")
	}
}
