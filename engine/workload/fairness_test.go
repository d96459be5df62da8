//go:build !race

// Names and amounts are the same under the race detector, which takes ten times as
// long.

package workload_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/memdiag/memdiag/engine/workload"
)

// TestSeedsDrawDifferentTruths: who has seen some seeds does not know the next.
func TestSeedsDrawDifferentTruths(t *testing.T) {
	every := map[int64]int{}
	for _, w := range workload.All() {
		if w.ID == "digits" { // of real data, and nothing of it grows
			continue
		}
		truths := map[string]bool{}
		for seed := range int64(20) {
			truth := w.Truth(seed)
			truths[fmt.Sprint(truth)] = true
			for _, g := range truth.Growth {
				if g.Event == workload.PerStep && w.Label == workload.Leak {
					every[g.Every]++
				}
			}
		}
		if len(truths) < 3 {
			t.Errorf("20 seeds of %s draw %d truths", w.ID, len(truths))
		}
	}
	t.Logf("leaks by the steps for each time: %v", every)
	if every[1] == 0 || every[20] == 0 {
		t.Errorf("no leak adds in each step, or none every 20 steps: %v", every)
	}
}

// telling are words that would name the label to whoever reads stacks.
var telling = regexp.MustCompile(`(?i)leak|forgot|bounded|decoy|clean|harmless|broken|buggy`)

// TestNothingGivesTheLabelAway: neither what functions, files and fields are
// called, nor how much there is of anything, tells leaks from the rest.
func TestNothingGivesTheLabelAway(t *testing.T) {
	var leaks, others []traits
	for _, w := range workload.All() {
		if w.ID == "digits" {
			continue
		}
		for seed := range int64(2) {
			run := runFor(t, w, seed, 20, false)
			own := traits{"steps of a run": w.Truth(seed).Steps, "sites": int64(len(run.last.Sites())), "stacks": int64(run.last.Stacks.Len()), "devices": int64(len(run.last.Devices))}
			if w.Label == workload.Leak {
				leaks = append(leaks, own)
			} else {
				others = append(others, own)
			}
			for _, site := range run.last.Sites() {
				for _, f := range run.last.Stacks.Frames(site.Stack) {
					if word := telling.FindString(f.Function + " " + f.File); word != "" {
						t.Errorf("%s: the stack has %s, in %s", w.ID, f.Function, f.File)
					}
				}
			}
			for _, h := range run.holders {
				if telling.MatchString(h.Path) {
					t.Errorf("%s: a holder is %s", w.ID, h.Path)
				}
			}
		}
	}
	for name := range leaks[0] {
		right := separation(values(leaks, name), values(others, name))
		t.Logf("%s: the best threshold is right for %.0f %%", name, 100*right)
		if right > 0.75 {
			t.Errorf("%s: a threshold tells leaks from the rest for %.0f %%", name, 100*right)
		}
	}
}

// traits are figures of a run that say nothing of growth.
type traits map[string]int64

func values(all []traits, name string) (out []int64) {
	for _, one := range all {
		out = append(out, one[name])
	}
	return out
}

// separation is the best that a threshold does, to either side: the mean of the
// shares of both lists that it is right for.
func separation(a, b []int64) (best float64) {
	above := func(list []int64, threshold int64) float64 {
		n := 0
		for _, x := range list {
			if x > threshold {
				n++
			}
		}
		return float64(n) / float64(len(list))
	}
	for _, threshold := range slices.Concat(a, b) {
		right := (above(a, threshold) + 1 - above(b, threshold)) / 2
		best = max(best, right, 1-right)
	}
	return best
}
