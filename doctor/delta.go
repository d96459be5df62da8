package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/record"
)

// Switch is a part of the program that can be switched off without changing its source.
type Switch struct {
	Name string
	Args []string // added to the command; nil for a part that the recorder switches off
}

// ownSwitches are those that the user need not name: loader workers, hooks of modules, torch.compile, autocast.
var ownSwitches = []Switch{{Name: "workers"}, {Name: "hooks"}, {Name: "compile"}, {Name: "autocast"}}

// mostDelta is how many runs a search over switches takes at most.
const mostDelta = 8

// delta switches parts of the program off: first all, then as few as end the growth (Zeller's delta debugging). It is for a leak whose
// holder and line are unknown, or whose trials prove nothing.
func (f *Findings) delta(ctx context.Context, lab Lab) error {
	runs, failed := 0, false
	var last *Tried
	gone := func(set []Switch) (bool, error) {
		runs++
		t := switchTrial(set)
		run, err := lab(ctx, fmt.Sprintf("without-%d", runs), Change{Intervention: &t.Intervention, Args: t.Args})
		if err != nil {
			return false, err
		}
		tried := JudgeTrial(t, f.Leak, f.Plain, run, f.Again)
		failed = run.ended(f.Plain) != ""
		if tried.Verdict == Proven || tried.Verdict == Needed {
			tried.Verdict, tried.Safe = Proven, false
			last = &tried
			return true, nil
		}
		if last == nil {
			f.Tried = append(f.Tried, tried)
		}
		return false, nil
	}
	set := slices.Concat(ownSwitches, f.Switches)
	found, err := gone(set)
	if err == nil && failed && len(f.Switches) > 0 { // it may not know one of the user's switches, which says nothing about the other parts
		set = ownSwitches
		found, err = gone(set)
	}
	if err != nil || !found {
		return err
	}
	_, err = fewest(set, func(s []Switch) (bool, error) {
		if runs == mostDelta {
			return false, nil
		}
		return gone(s)
	})
	f.Tried = append([]Tried{*last}, f.Tried...)
	return err
}

// fewest returns a smallest subset for which holds is still true, given that it is true for the whole set.
func fewest[T any](set []T, holds func([]T) (bool, error)) ([]T, error) {
	for parts := 2; len(set) > 1; {
		size := (len(set) + parts - 1) / parts
		smaller := false
		for at := 0; at < len(set) && !smaller; at += size {
			end := min(at+size, len(set))
			some, others := set[at:end], slices.Concat(set[:at], set[end:])
			for i, s := range [][]T{some, others} {
				if len(s) == 0 || i == 1 && parts == 2 {
					continue // with two parts, each is the complement of the other
				}
				ok, err := holds(s)
				if err != nil {
					return set, err
				}
				if ok {
					set, parts, smaller = s, max(2, parts-i), true
					if i == 0 {
						parts = 2
					}
					break
				}
			}
		}
		switch {
		case smaller:
		case parts >= len(set):
			return set, nil
		default:
			parts = min(2*parts, len(set))
		}
	}
	return set, nil
}

func switchTrial(set []Switch) Trial {
	var names, own, args []string
	for _, s := range set {
		names, args = append(names, s.Name), append(args, s.Args...)
		if s.Args == nil {
			own = append(own, s.Name)
		}
	}
	text := strings.Join(names, ", ")
	return Trial{
		record.Intervention{Kind: record.Switch, Path: strings.Join(own, ",")},
		"the leak comes with " + text, "off: " + text, args,
	}
}
