package files

import (
	"cmp"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// namePatterns find steps and ranks in the names that training libraries give
// to their dumps.
type namePatterns struct {
	rank  *regexp.Regexp
	steps []*regexp.Regexp // the first that matches counts
	epoch *regexp.Regexp
	last  *regexp.Regexp // else a last number, unless it is of a date
	date  *regexp.Regexp
	// stepFolder is the name of a folder that holds one step's dumps.
	stepFolder *regexp.Regexp
}

func newNamePatterns() *namePatterns {
	return &namePatterns{
		rank:       regexp.MustCompile(`(?i)(?:rank|(?:^|[^a-z])gpu)[-_]?(\d+)|[-_.]r(\d+)\b`), // snap.10.r3.pickle
		epoch:      regexp.MustCompile(`(?i)(?:^|[^a-z])ep(?:och)?[-_= ]?(\d+)`),               // snapshot_epoch_2_step_50.pickle
		stepFolder: regexp.MustCompile(`(?i)^(?:iteration|step)[-_]?\d+`),
		date:       regexp.MustCompile(`(?:^|\D)20\d\d-?(?:0[1-9]|1[0-2])-?(?:[0-2]\d|3[01])(?:[T _-]?\d\d[-:_]?\d\d(?:[-:_]?\d\d)?)?`),
		last:       regexp.MustCompile(`[-_](\d+)[-_]?(?:\.[a-zA-Z]+\d?){0,3}$`), // snapshot_50.pickle.gz; snapshot_50_rank3.pickle without its rank
		steps: []*regexp.Regexp{
			regexp.MustCompile(`(?i)iteration[-_= ]?(\d+)`),                     // torchtitan, torchtune: a folder
			regexp.MustCompile(`(?i)step[-_= ]?(\d+)`),                          // memory_snapshot_rank0_step6.pkl
			regexp.MustCompile(`(?i)(?:^|[^a-z])(?:iter|it|batch)[-_= ]?(\d+)`), // mem_epoch3_iter1110.pickle
			regexp.MustCompile(`(?i)\.(\d+)\.memory_snapshot`),                  // composer: rank0.12.memory_snapshot.pickle
		},
	}
}

// read returns the step and rank in a slash-separated path below the run's folder; NoStep and NoRank if there are none.
func (p *namePatterns) read(name string) (step int64, rank int) {
	step, rank = snapshot.NoStep, snapshot.NoRank
	if m := p.rank.FindStringSubmatch(name); m != nil {
		if n, err := strconv.Atoi(m[1] + m[2]); err == nil {
			rank = n
		}
		// The number of snapshot_rank_3.pickle is no step.
		name = p.rank.ReplaceAllString(name, "")
	}
	for _, re := range p.steps {
		if n, ok := number(re, name); ok {
			return n, rank
		}
	}
	if n, ok := number(p.last, p.date.ReplaceAllString(name, "")); ok {
		return n, rank
	}
	return step, rank
}

// opened is a snapshot with the data from its name.
func (p *namePatterns) opened(s *snapshot.Snapshot, name string) opened {
	slashed := filepath.ToSlash(name)
	o := opened{snapshot: s, name: name, epoch: p.epochOf(slashed), bare: p.bare(slashed)}
	o.step, _ = p.read(slashed)
	return o
}

// epochOf is the epoch in a name; NoStep for none.
func (p *namePatterns) epochOf(name string) int64 {
	if n, ok := number(p.epoch, name); ok {
		return n
	}
	return snapshot.NoStep
}

// bare reports whether no word says that a name's number is a step.
func (p *namePatterns) bare(name string) bool {
	return !slices.ContainsFunc(p.steps, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}

func number(re *regexp.Regexp, name string) (n int64, ok bool) {
	m := re.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n, err == nil && n <= maxStep
}

// stem is a name without its endings: "snapshot_50" of snapshot_50.pickle.gz.
func stem(name string) string {
	name = path.Base(name)
	if i := strings.IndexByte(name[1:], '.'); i >= 0 {
		return name[:i+1]
	}
	return name
}

// numbered reports whether names differ in their digits alone, so that compareNames
// gives the order that they were meant to have.
func numbered(names []string) bool {
	for _, name := range names {
		if withoutDigits(name) != withoutDigits(names[0]) {
			return false
		}
	}
	return true
}

// alike returns a function that reports whether a name differs from one of names in its digits alone.
func alike(names []string) func(name string) bool {
	shapes := make(map[string]bool)
	for _, name := range names {
		shapes[withoutDigits(name)] = true
	}
	return func(name string) bool { return shapes[withoutDigits(name)] }
}

// pattern is a name with a star for each number of its last part, for a shell.
func pattern(name string) string {
	dir, base := path.Split(name)
	return dir + regexp.MustCompile("[0-9]+").ReplaceAllString(base, "*")
}

func withoutDigits(name string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// compareNames orders names as a person does: runs of digits by their number,
// so that step_9 comes before step_10.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		if isDigit(a[0]) && isDigit(b[0]) {
			x, y := digits(a), digits(b)
			a, b = a[len(x):], b[len(y):]
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) string {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n]
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
