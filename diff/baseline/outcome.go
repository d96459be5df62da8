package baseline

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// State is the state of a leak compared with a file, or of an entry.
type State string

// The states. A gate fails on New and Regressed.
const (
	New       State = "new"       // no entry, or an expired one
	Known     State = "known"     // within the bound of its entry
	Regressed State = "regressed" // grows faster than its entry allows
	Library   State = "library"   // a known leak of a library

	Fixed     State = "fixed"     // the entry's stack is there, and does not leak
	Undecided State = "undecided" // it grew, and only a longer run can decide
	Unused    State = "unused"    // nothing is live there, in the first snapshot or the last
	Expired   State = "expired"   // its last day has passed: it no longer counts
)

// Ranked is the result of one rank.
type Ranked struct {
	Rank   int // snapshot.NoRank in a run without ranks
	Result *diff.Result
}

// Leak is one leak of a run, on all ranks that have it.
type Leak struct {
	Finding     *diff.Finding // from the rank where it grew most
	Ranks       []int         // ascending; nil in a run without ranks
	Fingerprint string
	State       State
	Entry       *Entry       // nil for none
	Library     *LibraryLeak // nil unless it is a known leak of a library
	Why         string       // one clause
}

// Passes reports whether a gate lets the leak pass.
func (l *Leak) Passes() bool { return l.State == Known || l.State == Library }

// Fate is an entry that no leak used, with the reason.
type Fate struct {
	Entry *Entry
	State State // Fixed, Undecided, Unused or Expired
}

// Outcome is the comparison of a run with a file.
type Outcome struct {
	Leaks []Leak // failing ones first, then larger growth first
	Fates []Fate // in the order of the file
	// Undecided are the findings, of all ranks, that may turn out to be leaks and have no entry.
	Undecided []*diff.Finding
	// Declared are such findings that grow towards a declared bound. They are not in Undecided.
	Declared []*diff.Finding
	// Partial: only a part of the run was judged, or with doubt, so that an entry that seems to be fixed may not be.
	// The caller sets it.
	Partial bool
}

// Failing returns the leaks that are new or regressed.
func (o *Outcome) Failing() []Leak {
	n := 0
	for n < len(o.Leaks) && !o.Leaks[n].Passes() {
		n++
	}
	return o.Leaks[:n]
}

// InDoubt reports whether a result has an undecided finding.
func (o *Outcome) InDoubt(r *diff.Result) bool {
	for i := range r.Findings {
		if slices.Contains(o.Undecided, &r.Findings[i]) {
			return true
		}
	}
	return false
}

// Fingerprint identifies the place of a site across edits of lines, checkouts, ranks and machines: by the functions
// of the user's own code on its stack, with the names of their files. Several lines of one function have one
// fingerprint. Growth of the process itself is identified by its label, since chance decides whether a run finds its
// line.
func Fingerprint(row *diff.Row) string {
	var text strings.Builder
	frames := row.Frames
	if row.Device.Kind == snapshot.Process && row.Label != "" {
		frames = nil
	}
	own := frame.Own(frames)
	for _, f := range frames {
		if !own(f) {
			continue
		}
		file := frame.Slashed(f.File)
		if strings.Contains(file, "/ipykernel_") {
			file = "notebook" // cells are files with names by process and time
		}
		text.WriteString(function(f) + "\x00" + frame.Base(file) + "\x01")
	}
	if text.Len() == 0 {
		for _, f := range frames {
			text.WriteString(function(f) + "\x01")
		}
	}
	if text.Len() == 0 {
		text.WriteString(row.Label)
	}
	return fmt.Sprintf("s1-%016x", xxhash.Sum64String(text.String()))
}

// function is a function's name; for native functions without parameters and template arguments, which a build may
// change.
func function(f snapshot.Frame) string {
	if strings.HasSuffix(f.File, ".go") || strings.HasSuffix(f.File, ".py") {
		return f.Function
	}
	if at := strings.IndexAny(f.Function, "(<"); at > 0 {
		return f.Function[:at]
	}
	return f.Function
}

// entry is the entry for a finding, by its largest row first; nil for none.
func (f *File) entry(found *diff.Finding) *Entry {
	for _, row := range found.Rows {
		name := Fingerprint(row)
		if i := slices.IndexFunc(f.Known, func(e Entry) bool { return e.Fingerprint == name }); i >= 0 {
			return &f.Known[i]
		}
	}
	return nil
}

// expired reports whether the entry's last day has passed.
func (e *Entry) expired(now time.Time) bool {
	return !e.Expires.IsZero() && !now.Before(e.Expires.AddDate(0, 0, 1))
}

// Judge compares the results of a run's ranks with the file, as of now. Leaks with one fingerprint share their
// entry's bound: the sum of their growth counts, on the rank where it is largest.
func (f *File) Judge(ranks []Ranked, now time.Time) *Outcome {
	o := &Outcome{}
	library := append(slices.Clone(f.Library), LibraryLeaks()...)
	grown := make(map[*Entry]float64) // low ends of rate intervals
	index := make(map[snapshot.Hash]int)
	for _, r := range ranks {
		here := make(map[*Entry]float64)
		for i := range r.Result.Findings {
			found := &r.Result.Findings[i]
			if found.Verdict != diff.Leak {
				continue
			}
			l := Leak{Finding: found, Fingerprint: Fingerprint(found.Rows[0]), Entry: f.entry(found)}
			if l.Entry == nil {
				l.Library = libraryLeak(found, r.Result, library)
			} else {
				l.Fingerprint = l.Entry.Fingerprint
				here[l.Entry] += found.Rate.Bytes.Low
			}
			at, ok := index[found.Rows[0].Hash]
			if !ok {
				at = len(o.Leaks)
				index[found.Rows[0].Hash] = at
				o.Leaks = append(o.Leaks, l)
			}
			if found.Growth().Bytes > o.Leaks[at].Finding.Growth().Bytes {
				o.Leaks[at].Finding = found
			}
			if r.Rank != snapshot.NoRank {
				o.Leaks[at].Ranks = append(o.Leaks[at].Ranks, r.Rank)
			}
		}
		for e, low := range here {
			grown[e] = max(grown[e], low)
		}
	}
	for i := range o.Leaks {
		l := &o.Leaks[i]
		l.State, l.Why = stateOf(l, grown[l.Entry], now)
	}
	o.sort()
	f.fates(o, ranks, now)
	return o
}

func (o *Outcome) sort() {
	slices.SortStableFunc(o.Leaks, func(a, b Leak) int {
		if passes := a.Passes(); passes != b.Passes() {
			if passes {
				return 1
			}
			return -1
		}
		return int(min(1, max(-1, b.Finding.Growth().Bytes-a.Finding.Growth().Bytes)))
	})
}

// Strict makes leaks of libraries New, so that they fail.
func (o *Outcome) Strict() {
	for i := range o.Leaks {
		if l := &o.Leaks[i]; l.State == Library {
			l.State = New
		}
	}
	o.sort()
}

func stateOf(l *Leak, low float64, now time.Time) (State, string) {
	e := l.Entry
	switch {
	case l.Library != nil:
		return Library, fmt.Sprintf("%s: %s; %s; %s", l.Library, l.Library.What, l.Library.WayOut, l.Library.References[0])
	case e == nil:
		return New, "not in the baseline"
	case e.expired(now):
		return New, "its entry in the baseline expired on " + e.Expires.Format(day)
	case e.MaxGrowth == nil:
		return Known, "in the baseline, at any rate"
	case e.MaxGrowth.Unit != l.Finding.Rate.Unit:
		return New, fmt.Sprintf("the baseline has its growth per %s, this run per %s", e.MaxGrowth.Unit, l.Finding.Rate.Unit)
	case low > float64(e.MaxGrowth.Bytes):
		return Regressed, fmt.Sprintf("at least %s/%s; the baseline allows %s", snapshot.FormatBytes(low), e.MaxGrowth.Unit, e.MaxGrowth)
	}
	return Known, fmt.Sprintf("within %s of the baseline", e.MaxGrowth)
}

// fates sets the fates of the entries that no leak used.
func (f *File) fates(o *Outcome, ranks []Ranked, now time.Time) {
	leaked := make(map[*Entry]bool)
	for _, l := range o.Leaks {
		leaked[l.Entry] = true
	}
	there, undecided := make(map[string]bool), make(map[*Entry]bool)
	for _, r := range ranks {
		for i := range r.Result.Rows {
			there[Fingerprint(&r.Result.Rows[i])] = true
		}
		for i := range r.Result.Findings {
			found := &r.Result.Findings[i]
			if found.Verdict != diff.Inconclusive {
				continue
			}
			e := f.entry(found)
			switch {
			case e != nil && !e.expired(now):
				undecided[e] = true
			case found.Bound != nil:
				o.Declared = append(o.Declared, found)
			default:
				o.Undecided = append(o.Undecided, found)
			}
		}
	}
	for i := range f.Known {
		e := &f.Known[i]
		switch {
		case e.expired(now):
			o.Fates = append(o.Fates, Fate{e, Expired})
		case leaked[e]:
		case undecided[e]:
			o.Fates = append(o.Fates, Fate{e, Undecided})
		case there[e.Fingerprint]:
			o.Fates = append(o.Fates, Fate{e, Fixed})
		default:
			o.Fates = append(o.Fates, Fate{e, Unused})
		}
	}
}

// room is the factor from a run's growth to its new bound: runs of the same program differ by less.
const room = 1.1

// Update returns the file that lets this outcome pass: new leaks are added, exceeded bounds are raised, and fixed
// entries are removed, unless the outcome is Partial. Unused, undecided and expired entries stay, for a person to
// decide. A second update changes nothing. where returns the place of a leak for readers.
func (f *File) Update(o *Outcome, where func(*diff.Finding) string) *File {
	next := &File{}
	sums := make(map[string]*diff.Growth)
	for i := range o.Leaks {
		l := &o.Leaks[i]
		b := sums[l.Fingerprint]
		if b == nil {
			b = &diff.Growth{Unit: l.Finding.Rate.Unit}
			sums[l.Fingerprint] = b
		}
		b.Bytes += snapshot.Bytes(math.Ceil(room * l.Finding.Rate.Bytes.High))
	}
	dropped := make(map[string]bool)
	for _, fate := range o.Fates {
		dropped[fate.Entry.Fingerprint] = fate.State == Fixed && !o.Partial
	}
	for _, e := range f.Known {
		if dropped[e.Fingerprint] {
			continue
		}
		for i := range o.Leaks {
			if l := &o.Leaks[i]; l.Fingerprint == e.Fingerprint && e.MaxGrowth != nil && (l.State == Regressed || e.MaxGrowth.Unit != l.Finding.Rate.Unit) {
				e.MaxGrowth = sums[e.Fingerprint]
			}
		}
		next.Known = append(next.Known, e)
	}
	for i := range o.Leaks {
		l := &o.Leaks[i]
		if l.Entry == nil && l.State != Library && !slices.ContainsFunc(next.Known, func(e Entry) bool { return e.Fingerprint == l.Fingerprint }) {
			next.Known = append(next.Known, Entry{Fingerprint: l.Fingerprint, Where: where(l.Finding), MaxGrowth: sums[l.Fingerprint]})
		}
	}
	next.sort()
	return next
}
