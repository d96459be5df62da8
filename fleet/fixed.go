package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/fleet/parquet"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// A leak that the runs of a later commit do not have is fixed only if one of them would have shown it: a run of the same
// program, that ended well, went on for long enough, and came to the function. memdiag verify asks the same of two
// runs, and knows more of them.

// enough: in a shorter run, a leak must have had time to add this many blocks, over as many snapshots.
const enough = 10

// length is how long a run was judged.
type length struct{ steps, snapshots int64 }

// witness is a run without a leak, with the data that is compared.
type witness struct {
	run       Run
	of        length
	functions map[baseline.Function]bool // those of the requested functions that it reached
	undecided map[string]bool            // fingerprints that only a longer run can judge
}

// wanting is a leak in the run where it grew most.
type wanting struct {
	fingerprint string
	run         Run
	of          length
	blocks      int64
	function    baseline.Function   // that leaks
	callers     []baseline.Function // from the program's own code; nil if files are unknown
}

// unproven maps the fingerprint of each leak to the reason why no run of a commit shows that it is fixed. A leak that a run
// shows to be fixed is left out.
func (s *Store) unproven(leaks []Leak, commit string) (map[string]string, error) {
	wanted, err := s.wantings(leaks)
	if err != nil || len(wanted) == 0 {
		return nil, err
	}
	asked := make(map[baseline.Function]bool)
	for _, w := range wanted {
		asked[w.function] = true
		for _, f := range w.callers {
			asked[f] = true
		}
	}
	runs, err := s.witnesses(func(r *Run) bool { return commit != "" && r.Commit == commit }, asked)
	if err != nil {
		return nil, err
	}
	why := make(map[string]string)
	for _, w := range wanted {
		if reason := w.unproven(runs); reason != "" {
			why[w.fingerprint] = reason
		}
	}
	return why, nil
}

// see calls take for each row of a table that belongs to one of the runs in in. The first column is run.
func see[T any](p *Part, in map[string]T, table string, columns []string, take func(of T, b *Batch, row int)) error {
	return p.scan(table, append([]string{"run"}, columns...), func(r *Run) bool { _, ok := in[r.ID]; return ok }, func(b *Batch) error {
		for row := range b.Rows {
			if of, ok := in[b.Text(0, row)]; ok {
				take(of, b, row)
			}
		}
		return nil
	})
}

// lengths reads how long runs of a part were judged.
func lengths(p *Part, in map[string]*length) error {
	return see(p, in, "ranks", []string{"snapshots", "first_step", "last_step"}, func(of *length, b *Batch, row int) {
		of.snapshots, of.steps = max(of.snapshots, b.Int(1, row)), max(of.steps, b.Int(3, row)-b.Int(2, row))
	})
}

// witnesses are the runs that a filter accepts, with those of the requested functions that they reached.
func (s *Store) witnesses(filter func(*Run) bool, asked map[baseline.Function]bool) ([]*witness, error) {
	var out []*witness
	for _, p := range s.Parts {
		in, of := make(map[string]*witness), make(map[string]*length)
		for i := range p.Runs {
			if r := &p.Runs[i]; filter(r) {
				w := &witness{run: *r, functions: make(map[baseline.Function]bool), undecided: make(map[string]bool)}
				in[r.ID], of[r.ID] = w, &w.of
				out = append(out, w)
			}
		}
		if len(in) == 0 {
			continue
		}
		err := lengths(p, of)
		if err == nil {
			err = reached(p, in, asked)
		}
		if err == nil {
			err = see(p, in, "findings", []string{"fingerprint", "verdict"}, func(w *witness, b *Batch, row int) {
				if b.Text(2, row) == "inconclusive" {
					w.undecided[b.Text(1, row)] = true
				}
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// reached reads which functions runs of a part reached: of the program's own on stored stacks, and those that are stored by
// their names.
func reached(p *Part, in map[string]*witness, asked map[baseline.Function]bool) error {
	type stack struct {
		of   *witness
		site string
	}
	var at stack
	var frames []snapshot.Frame
	end := func() {
		own := frame.Own(frames)
		for _, f := range frames {
			// Without the file's name, the program's own functions cannot be distinguished from a library's.
			if name := baseline.FunctionOf(f); asked[name] && stored(f.File) && own(f) {
				at.of.functions[name] = true
			}
		}
		frames = frames[:0]
	}
	err := see(p, in, "frames", []string{"site", "function", "file", "line"}, func(w *witness, b *Batch, row int) {
		if next := (stack{w, b.Text(1, row)}); next != at {
			end()
			at = next
		}
		if len(frames) < mostFrames {
			frames = append(frames, snapshot.Frame{Function: b.Text(2, row), File: b.Text(3, row), Line: int(b.Int(4, row))})
		}
	})
	if err != nil {
		return err
	}
	end()
	return see(p, in, functionsTable, []string{"function", "file"}, func(w *witness, b *Batch, row int) {
		if name := (baseline.Function{Name: b.Text(1, row), File: frame.Base(b.Text(2, row))}); asked[name] {
			w.functions[name] = true
		}
	})
}

// wantings are leaks as their largest findings have them, in no order.
func (s *Store) wantings(leaks []Leak) ([]*wanting, error) {
	type site struct{ run, site string }
	type found struct {
		*wanting
		site  site
		place string
	}
	byPart := make(map[*Part][]found)
	err := atLeads(leaks, []string{"run", "site", "place", "growth_blocks"}, func(i int, b *Batch, row int) {
		w := &wanting{fingerprint: leaks[i].Fingerprint, blocks: b.Int(3, row)}
		byPart[b.Part] = append(byPart[b.Part], found{w, site{b.Text(0, row), b.Text(1, row)}, b.Text(2, row)})
	})
	if err != nil {
		return nil, err
	}
	var out []*wanting
	for p, all := range byPart {
		of, stacks := make(map[string]*length), make(map[site][]snapshot.Frame)
		for _, w := range all {
			of[w.site.run] = &length{}
			stacks[w.site] = nil
		}
		err := lengths(p, of)
		if err == nil {
			err = see(p, of, "frames", []string{"site", "function", "file", "line"}, func(_ *length, b *Batch, row int) {
				at := site{b.Text(0, row), b.Text(1, row)}
				if frames, ok := stacks[at]; ok && len(frames) < mostFrames {
					stacks[at] = append(frames, snapshot.Frame{Function: b.Text(2, row), File: b.Text(3, row), Line: int(b.Int(4, row))})
				}
			})
		}
		if err != nil {
			return nil, err
		}
		for _, w := range all {
			at := slices.IndexFunc(p.Runs, func(r Run) bool { return r.ID == w.site.run })
			if at < 0 {
				return nil, &parquet.FormatError{Path: p.file("findings"), Reason: "a run that the table of runs lacks"}
			}
			w.run = p.Runs[at]
			w.of = *of[w.site.run]
			w.from(stacks[w.site], w.place)
			out = append(out, w.wanting)
		}
	}
	return out, nil
}

// from reads the function that leaks and its callers from a stack.
func (w *wanting) from(frames []snapshot.Frame, place string) {
	if len(frames) == 0 {
		return
	}
	head := max(0, frame.Headline(frames))
	for i, f := range frames {
		if strings.HasSuffix(place, frame.Base(f.File)+":"+strconv.Itoa(f.Line)) {
			head = i
			break
		}
	}
	w.function = baseline.FunctionOf(frames[head])
	own := frame.Own(frames)
	for _, f := range frames[head+1:] {
		if frame.Interpreted(f) && own(f) && !baseline.Begins(f.Function) {
			w.callers = append(w.callers, baseline.FunctionOf(f))
		}
	}
}

// unproven says why none of these runs shows that a leak is fixed; "" if one does. If the reasons differ, it gives that of
// the run that passed the most checks.
func (w *wanting) unproven(runs []*witness) string {
	const checks = 5
	nearest, why := -1, "there is no run"
	for _, r := range runs {
		passed, reason := w.held(r)
		if passed == checks {
			return ""
		}
		if passed > nearest {
			nearest, why = passed, reason
		}
	}
	return why
}

// held is how many checks a run passes, and why not the next.
func (w *wanting) held(r *witness) (passed int, why string) {
	before, after := info(&w.run), info(&r.run)
	unstored := false
	if w.run.Command != r.run.Command && !(stored(w.run.Command) && stored(r.run.Command)) { // hashes of other arguments differ as those of another program do
		unstored = before.Workload == "" || after.Workload == ""
		before.Command, after.Command = nil, nil
	}
	unstored = unstored || before.Workload+after.Workload+w.run.Command == ""
	differs, alike := baseline.Related(before, after)
	unit, was, is := "steps", float64(w.of.steps), float64(r.of.steps)
	if was <= 0 || is <= 0 {
		unit, was, is = "seconds", w.run.Seconds, r.run.Seconds
	}
	// Another commit has other code: the leaking function may be gone while its caller remains. With other arguments the call may lead
	// elsewhere.
	reached := baseline.Begins(w.function.Name) || r.functions[w.function] ||
		alike && slices.ContainsFunc(w.callers, func(f baseline.Function) bool { return r.functions[f] })
	long := is >= was && r.of.snapshots >= w.of.snapshots ||
		was > 0 && r.of.snapshots >= enough && float64(w.blocks)*is/was >= enough
	switch {
	case unstored:
		return 0, "commands are not stored"
	case differs != "":
		return 0, differs
	case r.run.Status != "ended" && !r.run.Started.IsZero(): // of a folder without run.json nothing is known
		return 1, "no run ended well"
	case !long:
		return 2, fmt.Sprintf("its %.3g %s with %d snapshots are too few to show a leak of this rate", is, unit, r.of.snapshots)
	case w.function == (baseline.Function{}):
		return 3, "its function is not known"
	case !reached:
		return 3, fmt.Sprintf("no run is known to have reached %s", w.function.Name)
	case r.undecided[w.fingerprint]:
		return 4, "it grew; only a longer run can tell whether it leaks"
	}
	return 5, ""
}

func info(r *Run) *snapshot.Info {
	return &snapshot.Info{Workload: r.Workload, Command: strings.Fields(r.Command)}
}

// stored reports whether a command or the name of a file is there as it was, not left out or hashed.
func stored(text string) bool { return text != "" && !strings.HasPrefix(text, hashMark) }
