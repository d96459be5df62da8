package fleet

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/report"
)

// Detail is one leak over all runs.
type Detail struct {
	Leak
	Frames  []string    `json:"frames"`  // innermost first, from the run where it was last seen
	Holders []Held      `json:"holders"` // the most frequent first
	In      []DetailRun `json:"in"`      // newest first
}

// Held is a holder, and on how many ranks of all runs it was found.
type Held struct {
	Kind   string `json:"kind"`
	Holder string `json:"holder"`
	Ranks  int    `json:"ranks"`
}

// DetailRun is a run that has the leak.
type DetailRun struct {
	Run    Run     `json:"run"`
	Ranks  int64   `json:"ranks"`
	Leaked int64   `json:"leaked_bytes"`
	Rate   float64 `json:"rate_per_second"` // mean of the leaking ranks
}

// Detail is nil if no run has the leak.
func (s *Store) Detail(fingerprint string) (*Detail, error) {
	leaks, err := s.Leaks(nil)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(leaks, func(l Leak) bool { return l.Fingerprint == fingerprint })
	if at < 0 {
		return nil, nil
	}
	if err := s.Name(leaks[at : at+1]); err != nil {
		return nil, err
	}
	d := &Detail{Leak: leaks[at], Frames: []string{}, Holders: []Held{}}
	for _, r := range s.Runs() {
		if in := d.perRun[r.ID]; in != nil {
			d.In = append(d.In, DetailRun{r, in.ranks, in.growth, in.rate / float64(in.ranks)})
		}
	}
	held := make(map[Held]int)
	has := func(r *Run) bool { return d.perRun[r.ID] != nil }
	for _, p := range s.Parts {
		if !slices.ContainsFunc(p.Runs, func(r Run) bool { return has(&r) }) {
			continue
		}
		if p.server != nil {
			err = p.holders(fingerprint, has, held)
		} else {
			err = p.scan("holders", []string{"run", "fingerprint", "kind", "holder"}, has, func(b *Batch) error {
				for i := range b.Rows {
					if b.Text(1, i) == fingerprint && d.perRun[b.Text(0, i)] != nil {
						held[Held{Kind: b.Text(2, i), Holder: b.Text(3, i)}]++
					}
				}
				return nil
			})
		}
		if err != nil {
			return nil, err
		}
	}
	for h, n := range held {
		h.Ranks = n
		d.Holders = append(d.Holders, h)
	}
	slices.SortFunc(d.Holders, func(a, b Held) int {
		return cmp.Or(cmp.Compare(b.Ranks, a.Ranks), cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Kind, b.Kind))
	})
	d.Frames, err = s.stackOf(d.In[0].Run.ID, fingerprint)
	return d, err
}

// stackOf is the stack of a fingerprint in a run.
func (s *Store) stackOf(run, fingerprint string) ([]string, error) {
	for _, p := range s.Parts {
		if !slices.ContainsFunc(p.Runs, func(r Run) bool { return r.ID == run }) {
			continue
		}
		site := ""
		err := p.scan("findings", []string{"run", "fingerprint", "site", "verdict"}, is(run), func(b *Batch) error {
			for i := range b.Rows {
				if site == "" && b.Text(0, i) == run && b.Text(1, i) == fingerprint && b.Text(3, i) == "leak" {
					site = b.Text(2, i)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		frames := []string{}
		err = p.scan("frames", []string{"run", "site", "function", "file", "line"}, is(run), func(b *Batch) error {
			for i := range b.Rows {
				if b.Text(0, i) == run && b.Text(1, i) == site {
					frames = append(frames, fmt.Sprintf("%s:%d in %s", b.Text(3, i), b.Int(4, i), b.Text(2, i)))
				}
			}
			return nil
		})
		return frames, err
	}
	return []string{}, nil
}

// WriteDetail writes one leak.
func WriteDetail(w io.Writer, d *Detail) error {
	var b strings.Builder
	_ = WriteLeaks(&b, []Leak{d.Leak}, d.Runs, 1) // a Builder takes all
	b.WriteString("\n")
	for i := len(d.Frames) - 1; i >= 0; i-- {
		mark := " |- "
		if i == len(d.Frames)-1 {
			mark = "-> "
		}
		fmt.Fprintln(&b, mark+report.Printable(d.Frames[i]))
	}
	for _, h := range d.Holders[:min(3, len(d.Holders))] {
		fmt.Fprintf(&b, "Held by: %s `%s` (on %s)\n", report.Printable(h.Kind), report.Printable(h.Holder), plural(h.Ranks, "rank"))
	}
	b.WriteString("\n")
	var rows [][]string
	for _, r := range d.In[:min(len(d.In), 20)] {
		rows = append(rows, []string{r.Run.ID, dayText(r.Run.When()), short(r.Run.Commit), r.Run.Library, fmt.Sprintf("%d of %d", r.Ranks, r.Run.Ranks), bySecond(r.Rate), size(r.Leaked), r.Run.Name})
	}
	table(&b, "run|day|commit|library|ranks|rate|leaked|name", rows)
	return flush(w, &b)
}
