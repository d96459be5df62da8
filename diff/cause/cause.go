// Package cause is the catalogue of leak causes and fixes: data, and one
// function that matches it.
package cause

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Cause is one entry of the catalogue.
type Cause struct {
	ID       string
	Name     string // "activations kept beyond the step"
	What     string // what happens
	Fix      string
	Workload string // a built-in workload that shows it

	matches func(Evidence) string
}

// Evidence is what a finding shows of its cause.
type Evidence struct {
	Frames  []snapshot.Frame // innermost first
	Owners  snapshot.Owners
	Holder  *snapshot.Holder
	PerStep float64 // blocks
	Leaking bool    // the verdict is leak
	Settled bool    // the verdict is bounded
}

// Match returns the first entry whose pattern fits, with the reason why; nil
// where none does.
func Match(e Evidence) (*Cause, string) {
	for i := range catalogue {
		if why := catalogue[i].matches(e); why != "" {
			return &catalogue[i], why
		}
	}
	return nil, ""
}

// All returns the catalogue in the order in which it is matched.
func All() []Cause { return slices.Clone(catalogue) }

var catalogue = []Cause{
	{
		ID: "optimizer-state", Name: "optimizer state, made at its first step",
		What: "The optimizer allocates its moments lazily and keeps them for the whole run. That is wanted.",
		Fix:  "none needed; take the base snapshot after the first step and it is gone from the list",
		matches: func(e Evidence) string {
			switch {
			case !e.Settled:
				return ""
			case e.Owners == snapshot.OwnedByOptim:
				return "only the optimizer holds it, and it does not go on growing"
			case within(e.Frames, "optim", "_init_group", "step"):
				return "it was allocated inside an optimizer's step, and does not go on growing"
			}
			return ""
		},
	},
	{
		ID: "graph-retained", Name: "autodiff graph kept beyond the step",
		What: "A loss or an output of every step is kept with its graph, and so all that its backward would need.",
		Fix:  "keep a number, not the tensor: read the scalar out (loss.item()), or detach what you keep",
		matches: func(e Evidence) string {
			if e.Leaking && e.Owners == snapshot.OwnedByTape {
				return "only the autodiff graph holds its blocks"
			}
			return ""
		},
	},
	{
		ID: "activations-kept", Name: "activations kept beyond the step",
		What:     "The forward pass appends what it computes to a list that outlives the step.",
		Fix:      "keep only what the head reads, in a local variable, or clear the list at the start of each forward",
		Workload: "L30",
		matches: func(e Evidence) string {
			if !e.Leaking {
				return ""
			}
			if e.Holder != nil && (e.Holder.Kind == "list" || e.Holder.Kind == "map") {
				return "the growing " + e.Holder.Kind + " " + e.Holder.Path + " holds them, and they are born in a forward pass"
			}
			if inForward(e.Frames) && e.PerStep > 0 {
				return "its blocks are born in a forward pass and outlive their step"
			}
			return ""
		},
	},
}

func within(frames []snapshot.Frame, file string, functions ...string) bool {
	return slices.ContainsFunc(frames, func(f snapshot.Frame) bool {
		return strings.Contains(f.File, file) && slices.ContainsFunc(functions, func(name string) bool { return strings.EqualFold(lastName(f.Function), name) })
	})
}

func inForward(frames []snapshot.Frame) bool {
	return slices.ContainsFunc(frames, func(f snapshot.Frame) bool { return strings.EqualFold(lastName(f.Function), "forward") })
}

// lastName is what stands after the last dot: "workload.(*Pyramid).Forward" is
// "Forward".
func lastName(function string) string { return function[strings.LastIndexByte(function, '.')+1:] }
