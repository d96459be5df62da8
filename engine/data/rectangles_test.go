package data_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/engine/data"
)

func TestBatchesDependOnSeedAndStepOnly(t *testing.T) {
	r := data.Rectangles{Seed: 1, Size: 32, Grid: 8}
	a, again, next := r.Batch(3, 2), r.Batch(3, 2), r.Batch(4, 2)
	if diff := cmp.Diff(a, again); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(a.Images, next.Images) {
		t.Error("two steps have the same images")
	}
}

func TestTargetsAgreeWithTheImages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n, size, grid = 2, 32, 8
		r := data.Rectangles{Seed: rapid.Uint64().Draw(t, "seed"), Size: size, Grid: grid}
		b := r.Batch(rapid.Int64Range(0, 1e6).Draw(t, "step"), n)
		objects, weight := 0, [2]float64{}
		for i := range n {
			for cell := range grid * grid {
				at := i*grid*grid + cell
				label := b.Labels[at]
				x, y := cell%grid*4+2, cell/grid*4+2
				brightest := data.Background
				for c := range int32(3) {
					if b.Images[(i*3+int(c))*size*size+y*size+x] > 0.5 {
						brightest = c + 1
					}
				}
				if label != brightest {
					t.Fatalf("image %d cell %d: label %d over a pixel of class %d", i, cell, label, brightest)
				}
				inside := label != data.Background
				if inside != (b.Inside[at] == 1) {
					t.Fatalf("cell %d: label %d, inside %g", at, label, b.Inside[at])
				}
				if inside {
					objects++
					weight[1] += float64(b.Weights[at])
				} else {
					weight[0] += float64(b.Weights[at])
				}
				box := func(edge int) float32 { return b.Boxes[(i*4+edge)*grid*grid+cell] }
				if width := box(0) + box(2); inside && (width < 0.25 || width > 0.5) || !inside && width != 0 {
					t.Fatalf("cell %d of label %d has a box of width %g", at, label, width)
				}
			}
		}
		if objects == 0 || objects != b.Objects {
			t.Fatalf("%d cells on objects, the batch says %d", objects, b.Objects)
		}
		for _, w := range weight {
			if math.Abs(w-0.5) > 1e-4 {
				t.Fatalf("weights add up to %v, want a half each", weight)
			}
		}
	})
}
