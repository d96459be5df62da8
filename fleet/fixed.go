package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// A leak that the runs of a later commit do not have is fixed only if one of them would have shown it: a run of the same
// program, that ended well, went on for long enough, and came to the function. memdiag verify asks the same of two
// runs, and knows more of them.

// enough is how many blocks a leak must have had time to add, at as many snapshots, in a run that is shorter.
const enough = 10

// length is how long a run was judged.
type length struct{ steps, snapshots int64 }

// witness is a run without a leak, and what is kept of it.
type witness struct {
	run       Run
	of        length
	functions map[string]bool // that it reached
	undecided map[string]bool // fingerprints that only a longer run can judge
}

// wanting is a leak in the run where it gathered most.
type wanting struct {
	fingerprint string
	run         Run
	of          length
	blocks      int64
	function    string   // that leaks
	callers     []string // of the program's own code; nil where files are not known
}

// witnesses are the runs that a filter takes.
func (s *Store) witnesses(wanted func(*Run) bool) ([]*witness, error) {
	var out []*witness
	for _, p := range s.Parts {
		in := make(map[string]*witness)
		for i := range p.Runs {
			if r := &p.Runs[i]; wanted(r) {
				in[r.ID] = &witness{run: *r, functions: make(map[string]bool), undecided: make(map[string]bool)}
				out = append(out, in[r.ID])
			}
		}
		if len(in) == 0 {
			continue
		}
		see := func(table string, columns []string, take func(w *witness, b *Batch, row int)) error {
			return p.scan(table, append([]string{"run"}, columns...), func(b *Batch) error {
				for row := range b.Rows {
					if w := in[b.Text(0, row)]; w != nil {
						take(w, b, row)
					}
				}
				return nil
			})
		}
		err := see("ranks", []string{"snapshots", "first_step", "last_step"}, func(w *witness, b *Batch, row int) {
			w.of.snapshots, w.of.steps = max(w.of.snapshots, b.Int(1, row)), max(w.of.steps, b.Int(3, row)-b.Int(2, row))
		})
		if err == nil {
			err = see("frames", []string{"function"}, func(w *witness, b *Batch, row int) { w.functions[b.Text(1, row)] = true })
		}
		if err == nil {
			err = see(functionsTable, []string{"function"}, func(w *witness, b *Batch, row int) { w.functions[b.Text(1, row)] = true })
		}
		if err == nil {
			err = see("findings", []string{"fingerprint", "verdict"}, func(w *witness, b *Batch, row int) {
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

// wanting is a leak as its largest finding has it.
func (s *Store) wanting(l *Leak) (*wanting, error) {
	at := l.lead
	f, columns, err := at.part.open("findings", []string{"run", "site", "place", "growth_blocks"})
	if err != nil {
		return nil, err
	}
	b, err := at.part.batch(f, columns, at.group)
	_ = f.Close()
	if err != nil {
		return nil, err
	}
	run, site, place := b.Text(0, at.row), b.Text(1, at.row), b.Text(2, at.row)
	w := &wanting{fingerprint: l.Fingerprint, blocks: b.Int(3, at.row)}
	seen, err := s.witnesses(func(r *Run) bool { return r.ID == run })
	if err != nil {
		return nil, err
	}
	w.run, w.of = seen[0].run, seen[0].of
	var frames []snapshot.Frame
	err = at.part.scan("frames", []string{"run", "site", "function", "file", "line"}, func(b *Batch) error {
		for i := range b.Rows {
			if b.Text(0, i) == run && b.Text(1, i) == site {
				frames = append(frames, snapshot.Frame{Function: b.Text(2, i), File: b.Text(3, i), Line: int(b.Int(4, i))})
			}
		}
		return nil
	})
	if err != nil || len(frames) == 0 {
		return w, err
	}
	head := max(0, frame.Headline(frames))
	for i, f := range frames {
		if strings.HasSuffix(place, frame.Base(f.File)+":"+strconv.Itoa(f.Line)) {
			head = i
			break
		}
	}
	w.function = frames[head].Function
	own := frame.Own(frames)
	for _, f := range frames[head+1:] {
		if frame.Interpreted(f) && own(f) && !baseline.Begins(f.Function) {
			w.callers = append(w.callers, f.Function)
		}
	}
	return w, nil
}

// unproven says why none of these runs shows that a leak is fixed; "" if one does. Of several reasons it is that of the run
// which comes nearest.
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
	before := &snapshot.Info{Workload: w.run.Workload, Command: strings.Fields(w.run.Command)}
	after := &snapshot.Info{Workload: r.run.Workload, Command: strings.Fields(r.run.Command)}
	differs, alike := baseline.Related(before, after)
	known := r.run.Workload != "" || r.run.Command != "" && w.run.Command != ""
	unit, was, is := "steps", float64(w.of.steps), float64(r.of.steps)
	if was <= 0 || is <= 0 {
		unit, was, is = "seconds", w.run.Seconds, r.run.Seconds
	}
	// Another commit has other code: what leaked may be gone, and its caller is there. With other arguments it may come
	// elsewhere.
	reached := baseline.Begins(w.function) || r.functions[w.function] ||
		known && alike && slices.ContainsFunc(w.callers, func(name string) bool { return r.functions[name] })
	long := is >= was && r.of.snapshots >= w.of.snapshots ||
		was > 0 && r.of.snapshots >= enough && float64(w.blocks)*is/was >= enough
	switch {
	case differs != "":
		return 0, differs
	case r.run.Status != "ended" && !r.run.Started.IsZero(): // of a folder without run.json nothing is known
		return 1, "no run ended well"
	case !long:
		return 2, fmt.Sprintf("its %.3g %s with %d snapshots are too few to show a leak of this rate", is, unit, r.of.snapshots)
	case !reached:
		return 3, fmt.Sprintf("no run is known to have reached %s", w.function)
	case r.undecided[w.fingerprint]:
		return 4, "it grew; only a longer run can tell whether it leaks"
	}
	return 5, ""
}
