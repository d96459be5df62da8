package files

import (
	"cmp"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// namePatterns find steps and ranks in the names that training libraries give
// to their dumps.
type namePatterns struct {
	rank  *regexp.Regexp
	steps []*regexp.Regexp // the first that matches counts
	// stepFolder is the name of a folder that holds one step's dumps.
	stepFolder *regexp.Regexp
}

func newNamePatterns() *namePatterns {
	return &namePatterns{
		rank:       regexp.MustCompile(`(?i)rank[-_]?(\d+)`),
		stepFolder: regexp.MustCompile(`(?i)^(?:iteration|step)[-_]?\d+`),
		steps: []*regexp.Regexp{
			regexp.MustCompile(`(?i)iteration[-_]?(\d+)`),           // torchtitan, torchtune: a folder
			regexp.MustCompile(`(?i)step[-_]?(\d+)`),                // memory_snapshot_rank0_step6.pkl
			regexp.MustCompile(`(?i)\.(\d+)\.memory_snapshot`),      // composer: rank0.12.memory_snapshot.pickle
			regexp.MustCompile(`[-_](\d+)(?:\.[a-zA-Z]+\d?){0,3}$`), // snapshot_50.pickle.gz
		},
	}
}

// read returns what a slash-separated path below the run's folder tells;
// NoStep and NoRank where it does not.
func (p *namePatterns) read(name string) (step int64, rank int) {
	step, rank = snapshot.NoStep, snapshot.NoRank
	if m := p.rank.FindStringSubmatch(name); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			rank = n
		}
		// The number of snapshot_rank_3.pickle is no step.
		name = p.rank.ReplaceAllString(name, "")
	}
	for _, re := range p.steps {
		if m := re.FindStringSubmatch(name); m != nil {
			if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
				return n, rank
			}
		}
	}
	return step, rank
}

// stem is a name without its endings: "snapshot_50" of snapshot_50.pickle.gz.
func stem(name string) string {
	name = path.Base(name)
	if i := strings.IndexByte(name[1:], '.'); i >= 0 {
		return name[:i+1]
	}
	return name
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
