package baseline

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

//go:embed known.yml
var publishedText []byte

// LibraryLeak is a known leak of a library, which its users can only wait for to be fixed, or avoid.
type LibraryLeak struct {
	ID      string `yaml:"id"`
	Package string `yaml:"package"` // Python's import name
	From    string `yaml:"from"`    // the first version with the leak; "" for any
	Below   string `yaml:"below"`   // the first version without it; "" for none yet
	What    string `yaml:"what"`
	// Files are path endings of the innermost Python frame of a stack; a folder ends in a slash. A leak there is the
	// library's alone, and a gate lets it pass.
	Files []string `yaml:"files"`
	// Uses are path endings of files on the stack, or of files that are used if there is no stack: it may be this
	// leak.
	Uses       []string `yaml:"uses"`
	WayOut     string   `yaml:"way-out"`
	Cause      string   `yaml:"cause"`      // an id in package cause; "" if the normal search finds it
	References []string `yaml:"references"` // public issues; the first is printed
}

// KnownVersion is the format version of lists of known library leaks.
const KnownVersion = 1

// LibraryLeaks returns memdiag's list. Each leak has public reports, which name the versions.
func LibraryLeaks() []LibraryLeak { return slices.Clone(published()) }

// published reads the list once: each rank of a run is compared with it, and reading it takes as long as judging a
// small rank.
var published = sync.OnceValue(func() []LibraryLeak {
	leaks, err := ParseLibraryLeaks(publishedText)
	if err != nil {
		panic(err) // the list is embedded, and tested
	}
	return leaks
})

// ParseLibraryLeaks reads a list of known library leaks. Its error is an *Error with the place.
func ParseLibraryLeaks(text []byte) ([]LibraryLeak, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if fault := misshapen(text); fault != nil {
		return nil, fault
	}
	var d struct {
		Version int           `yaml:"version"`
		Leaks   []LibraryLeak `yaml:"leaks"`
	}
	if err := yaml.UnmarshalWithOptions(text, &d, yaml.Strict()); err != nil {
		return nil, faultOf(err, text)
	}
	if d.Version != KnownVersion {
		return nil, faultAt(text, "$.version", fmt.Errorf("this memdiag reads version %d; write version: %d", KnownVersion, KnownVersion))
	}
	seen := make(map[string]bool)
	for i, l := range d.Leaks {
		at := fmt.Sprintf("$.leaks[%d]", i)
		var missing string
		for _, field := range []struct{ name, value string }{{"id", l.ID}, {"package", l.Package}, {"what", l.What}, {"way-out", l.WayOut}} {
			if field.value == "" {
				missing = field.name
				break
			}
		}
		switch {
		case missing != "":
			return nil, faultAt(text, at, fmt.Errorf("a known leak needs its %s", missing))
		case seen[l.ID]:
			return nil, faultAt(text, at+".id", errors.New("this id is listed twice"))
		case len(l.Files) == 0 && len(l.Uses) == 0:
			return nil, faultAt(text, at, errors.New("a known leak needs files that allocate, or uses"))
		case len(l.References) == 0:
			return nil, faultAt(text, at, errors.New("a known leak needs a reference"))
		case l.Cause != "" && cause.Find(l.Cause) == nil:
			return nil, faultAt(text, at+".cause", errors.New("memdiag explain lists the causes"))
		case l.From != "" && len(numbers(l.From)) == 0 || l.Below != "" && len(numbers(l.Below)) == 0:
			return nil, faultAt(text, at, errors.New("from and below are versions, such as \"2.4.1\""))
		}
		seen[l.ID] = true
	}
	return d.Leaks, nil
}

// String is "torch-dtensor-spec of torch 2.10 to before 2.12".
func (l *LibraryLeak) String() string {
	text := l.ID + " of " + l.Package
	if l.From != "" {
		text += " " + l.From
	}
	switch {
	case l.Below == "":
		return text + " and newer"
	case l.From == "":
		return text + " before " + l.Below
	}
	return text + " to before " + l.Below
}

// versionOf is the package's version in a run; "" if unknown. A snapshot's producer names its own version.
func versionOf(r *diff.Result, name string) string {
	if run := r.Run(); run != nil && run.Info.Packages[name] != "" {
		return run.Info.Packages[name]
	}
	producers := map[string]string{"torch": "PyTorch", "jax": "JAX"}
	if r.Last != nil && producers[name] != "" {
		if version, ok := strings.CutPrefix(r.Last.Producer, producers[name]+" "); ok {
			return version
		}
	}
	return ""
}

// leaksIn reports whether a version has the leak.
func (l *LibraryLeak) leaksIn(version string) bool {
	return len(numbers(version)) > 0 && (l.Below == "" || older(version, l.Below)) && !older(version, l.From)
}

// libraryLeak is the known leak that explains all rows of a finding; nil for none, and if no version is known.
func libraryLeak(f *diff.Finding, r *diff.Result, known []LibraryLeak) *LibraryLeak {
	for _, l := range known {
		if len(l.Files) == 0 || !l.leaksIn(versionOf(r, l.Package)) || l.heldElsewhere(f) {
			continue
		}
		if !slices.ContainsFunc(f.Rows, func(row *diff.Row) bool { return !l.allocates(row) }) {
			return &l
		}
	}
	return nil
}

// heldElsewhere reports whether a named holder outside of the package holds the blocks, such as a list of the
// program's with outputs of the library.
func (l *LibraryLeak) heldElsewhere(f *diff.Finding) bool {
	h := f.Holder
	return h != nil && h.Path != snapshot.Nameless && !strings.HasPrefix(h.Path, l.Package+".")
}

// KnownIn lists the known library leaks that a result shows or may show, a sentence each: "numpy 2.4.0 leaks here;
// …".
func KnownIn(r *diff.Result, known []LibraryLeak) (out []string) {
	if r.Leaks() == 0 && r.ProcessGrowth() == nil {
		return nil
	}
	for i := range known {
		l := &known[i]
		version := versionOf(r, l.Package)
		if !l.leaksIn(version) {
			continue
		}
		claim := ""
		for k := range r.Findings {
			switch in := l.in(&r.Findings[k]); in {
			case leaksHere:
				claim = in
			default:
				claim = cmp.Or(claim, in)
			}
		}
		if r.ProcessGrowth() != nil && len(l.Uses) > 0 {
			claim = cmp.Or(claim, mayBeThis)
		}
		if claim != "" {
			text := fmt.Sprintf("%s %s %s: %s", l.Package, version, claim, l.What)
			if l.Below != "" {
				text += fmt.Sprintf(" (fixed in %s)", l.Below)
			}
			out = append(out, fmt.Sprintf("%s; %s: %s", text, l.WayOut, l.References[0]))
		}
	}
	return out
}

// How certain it is that a finding is a known leak.
const (
	leaksHere   = "leaks here"
	mayLeakHere = "may leak here"
	mayBeThis   = "may be what leaks"
)

// in returns how certain it is that the finding is this leak; "" if it is not. The version is one with the leak.
func (l *LibraryLeak) in(f *diff.Finding) string {
	switch {
	case f.Verdict != diff.Leak || l.heldElsewhere(f):
	case f.OfProcess() && len(l.Uses) > 0:
		return mayBeThis
	case len(l.Files) > 0 && !slices.ContainsFunc(f.Rows, func(row *diff.Row) bool { return !l.allocates(row) }):
		return leaksHere
	case slices.ContainsFunc(f.Rows[0].Frames, func(at snapshot.Frame) bool { return installedIn(at.File, l.Uses) }):
		return mayLeakHere
	case len(l.Uses) > 0 && f.Headline == 0 && f.Rows[0].Device.Kind == snapshot.PythonHeap && f.Unheld():
		return mayBeThis // extensions have no Python frames
	}
	return ""
}

// NameCauses sets the cause of leaks without one by known leaks: first those that they show, then those that they may
// show.
func NameCauses(r *diff.Result, known []LibraryLeak) {
	for _, sure := range []string{leaksHere, mayLeakHere, mayBeThis} {
		for i := range known {
			l := &known[i]
			version := versionOf(r, l.Package)
			if l.Cause == "" || !l.leaksIn(version) {
				continue
			}
			for k := range r.Findings {
				// If no holder was searched for, an installed package does not show a cause.
				if f := &r.Findings[k]; f.Cause == nil && l.in(f) == sure && (sure != mayBeThis || f.Holder != nil) {
					f.Cause, f.CauseWhy = r.CauseNamed(l.Cause), fmt.Sprintf("likely: %s %s %s", l.Package, version, sure)
				}
			}
		}
	}
}

// allocates reports whether the row's innermost Python frame is in the leak's Files.
func (l *LibraryLeak) allocates(row *diff.Row) bool {
	for _, f := range row.Frames {
		if strings.HasSuffix(f.File, ".py") {
			return installedIn(f.File, l.Files)
		}
	}
	return false // not called by Python
}

// installedIn reports whether a file is one of these installed files, or in one of these folders.
func installedIn(file string, of []string) bool {
	file = frame.Slashed(file)
	return slices.ContainsFunc(of, func(of string) bool {
		folder := strings.HasSuffix(of, "/")
		return folder && strings.Contains(file, "/site-packages/"+of) || !folder && strings.HasSuffix(file, "/site-packages/"+of)
	})
}

// older compares versions number by number, up to the first part that is no number: 2.10.1+cu128 is older than 2.11.
// Nothing is older than "".
func older(a, b string) bool {
	x, y := numbers(a), numbers(b)
	return len(y) > 0 && slices.Compare(x, y) < 0
}

func numbers(version string) (out []int) {
	for part := range strings.SplitSeq(version, ".") {
		digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]
		n, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		out = append(out, n)
		if digits != part {
			break
		}
	}
	return out
}
