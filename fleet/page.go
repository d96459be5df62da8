package fleet

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

//go:embed assets/page.html
var pageText string

//go:embed assets/page.css
var pageStyle string

// Bounds on what a page shows.
const (
	pageLeaks  = 50
	pageRuns   = 200
	pageMaps   = 6  // runs with a heat map
	pageRows   = 64 // rows of one map
	pageTimes  = 80 // columns of one map
	pageSparks = 24
	heatLevels = 7
)

// pageView is what the page's template shows. Names are escaped by the template.
type pageView struct {
	Title, Sentence, Policy, Version, Written, Dir string
	Style                                          template.CSS
	Leaks                                          []pageLeak
	MoreLeaks, MoreRuns                            int
	Maps                                           []heatMap
	Runs                                           []pageRun
}

type pageLeak struct {
	Place, Cause, Cost, Share, Leaked, Lost, Rate, First, FirstCommit, Last, Fingerprint string
	Bar                                                                                  float64
	Runs                                                                                 int
	Ranks                                                                                int64
}

type pageRun struct {
	ID, Day, Commit, Status, Verdict, Growth, Name string
	Leaks, Ranks, Steps                            int64
	Anchor                                         bool
	Link                                           template.URL
}

// heatMap shows growth by rank and time in one run, and small plots of its ranks.
type heatMap struct {
	ID, Name, Day, Commit, Status, Sentence, Legend, Most string
	Width, Height                                         int
	Cells                                                 []heatCell
	Labels                                                []heatLabel
	Steps                                                 []int
	Sparks                                                []spark
}

type heatCell struct {
	X, Y, W, H, Level int
	Title             string
}

type heatLabel struct {
	X, Y int
	Text string
	End  bool
}

type spark struct{ Name, Slope, Points, Title string }

// flag is the one that names the fleet.
func (s *Store) flag() string {
	if len(s.Parts) > 0 && s.Parts[0].server != nil {
		return "--from"
	}
	return "--fleet"
}

// Page writes one HTML file about the fleet that needs nothing else: leaks by cost, a heat map of
// ranks over time and small multiples of the latest leaking runs, and all runs.
func Page(w io.Writer, s *Store, version string, now time.Time) error {
	leaks, err := s.Leaks(nil)
	if err != nil {
		return err
	}
	shown := leaks[:min(len(leaks), pageLeaks)]
	if err := s.Name(shown); err != nil {
		return err
	}
	runs := s.Runs()
	sum := sha256.Sum256([]byte(pageStyle))
	v := pageView{
		Title: "Fleet " + filepath.Base(s.Dir), Version: version, Written: now.UTC().Format("2006-01-02 15:04") + " UTC", Dir: s.flag() + " " + s.Dir,
		Style:     template.CSS(pageStyle), //nolint:gosec // the page's own
		Policy:    "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
		MoreLeaks: len(leaks) - len(shown),
	}
	v.Sentence = pageSentence(runs, leaks)
	for i := range shown {
		v.Leaks = append(v.Leaks, pageLeakOf(&shown[i], shown[0].LeakedHours))
	}
	// Runs of many ranks have more to show.
	several := func(r Run) int { return int(min(r.Ranks, 2)) }
	for _, r := range slices.SortedStableFunc(slices.Values(runs), func(a, b Run) int { return cmp.Compare(several(b), several(a)) }) {
		if r.Verdict != "leak" || len(v.Maps) == pageMaps {
			continue
		}
		m, err := s.heatMap(r)
		if err != nil {
			return err
		}
		if m != nil {
			v.Maps = append(v.Maps, *m)
		}
	}
	for _, r := range runs[:min(len(runs), pageRuns)] {
		p := pageRun{ID: r.ID, Day: dayText(r.When()), Commit: short(r.Commit), Status: r.Status, Verdict: r.Verdict, Growth: size(r.Growth), Name: report.Printable(r.Name), Leaks: r.Leaks, Ranks: r.Ranks, Steps: r.Steps}
		p.Anchor = slices.ContainsFunc(v.Maps, func(m heatMap) bool { return m.ID == r.ID })
		// The run's own page, if there is one beside its snapshots.
		if page := filepath.Join(r.Path, "report.html"); filepath.IsAbs(r.Path) && isFile(page) {
			p.Link = template.URL((&url.URL{Scheme: "file", Path: page}).String()) //nolint:gosec // a path, as an escaped URL
		}
		v.Runs = append(v.Runs, p)
	}
	v.MoreRuns = len(runs) - len(v.Runs)
	page, err := template.New("fleet").Parse(pageText)
	if err != nil {
		return err
	}
	return page.Execute(w, v)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func pageSentence(runs []Run, leaks []Leak) string {
	leaking := 0
	for _, r := range runs {
		if r.Verdict == "leak" {
			leaking++
		}
	}
	cost, lost := 0., 0.
	for _, l := range leaks {
		cost, lost = cost+l.LeakedHours, lost+l.GPUHours
	}
	text := fmt.Sprintf("%s in %d of %s", plural(len(leaks), "leak"), leaking, plural(len(runs), "run"))
	if cost > 0 {
		text += ", which held " + overTime(cost)
	}
	if lost > 0 {
		text += fmt.Sprintf("; %.1f GPU hours lost", lost)
	}
	return text + "."
}

func pageLeakOf(l *Leak, most float64) pageLeak {
	lost := "–"
	if l.GPUHours > 0 {
		lost = fmt.Sprintf("%.1f h", l.GPUHours)
	}
	share := 0.
	if most > 0 {
		share = l.LeakedHours / most
	}
	return pageLeak{
		Place: report.Printable(l.Place), Cause: l.Cause, Cost: overTime(l.LeakedHours), Bar: math.Round(90 * share), Share: fmt.Sprintf("%.0f %%", 100*share),
		Leaked: size(l.Leaked), Lost: lost, Rate: bySecond(l.RateMedian), First: dayText(l.FirstSeen), FirstCommit: short(l.FirstCommit), Last: dayText(l.LastSeen),
		Fingerprint: l.Fingerprint, Runs: l.Runs, Ranks: l.Ranks,
	}
}

// line is what a rank's leading device held.
type line struct {
	rank  int64
	steps []int64
	bytes []int64
}

// lines are those of all ranks of a run, ascending: of each the device that grew most.
func (s *Store) lines(run string) ([]line, error) {
	type key struct {
		rank   int64
		device string
	}
	all := make(map[key]*line)
	for _, p := range s.Parts {
		if !slices.ContainsFunc(p.Runs, func(r Run) bool { return r.ID == run }) {
			continue
		}
		err := p.scan("series", []string{"run", "rank", "step", "device", "allocated_bytes"}, is(run), func(b *Batch) error {
			for i := range b.Rows {
				if b.Text(0, i) != run {
					continue
				}
				k := key{b.Int(1, i), b.Text(3, i)}
				if all[k] == nil {
					all[k] = &line{rank: k.rank}
				}
				all[k].steps, all[k].bytes = append(all[k].steps, b.Int(2, i)), append(all[k].bytes, b.Int(4, i))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	best := make(map[int64]*line)
	for k, l := range all {
		if old := best[k.rank]; old == nil || l.growth(len(l.bytes)-1) > old.growth(len(old.bytes)-1) {
			best[k.rank] = l
		}
	}
	var out []line
	for _, l := range best {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b line) int { return cmp.Compare(a.rank, b.rank) })
	return out, nil
}

func (l *line) growth(at int) int64 { return l.bytes[at] - l.bytes[0] }

// at is the place of the last snapshot up to a step.
func (l *line) at(step int64) int {
	i, found := slices.BinarySearch(l.steps, step)
	if !found {
		i--
	}
	return max(0, min(i, len(l.steps)-1))
}

// heatMap is nil for a run with too little to draw.
func (s *Store) heatMap(r Run) (*heatMap, error) {
	lines, err := s.lines(r.ID)
	if err != nil {
		return nil, err
	}
	first, last, most := int64(math.MaxInt64), int64(math.MinInt64), int64(0)
	points := 0
	for i := range lines {
		l := &lines[i]
		first, last, points = min(first, l.steps[0]), max(last, l.steps[len(l.steps)-1]), max(points, len(l.steps))
		for at := range l.bytes {
			most = max(most, l.growth(at))
		}
	}
	if points < 2 || last <= first {
		return nil, nil //nolint:nilnil // documented
	}
	m := &heatMap{ID: r.ID, Name: report.Printable(r.Name), Day: dayText(r.When()), Commit: r.Commit, Status: r.Status, Most: size(most)}
	if m.Commit != "" {
		m.Commit = short(m.Commit)
	}
	rows, times := min(len(lines), pageRows), min(points, pageTimes)
	cell := max(4, min(16, 512/rows))
	wide := 840 / times
	const left = 80
	m.Width, m.Height = left+times*wide, rows*cell+18
	for row := range rows {
		from, to := row*len(lines)/rows, (row+1)*len(lines)/rows
		name := fmt.Sprintf("rank %d", lines[from].rank)
		switch {
		case lines[from].rank < 0:
			name = "all"
		case to-from > 1:
			name = fmt.Sprintf("%d–%d", lines[from].rank, lines[to-1].rank)
		}
		if row%max(1, 16/cell) == 0 {
			m.Labels = append(m.Labels, heatLabel{left - 6, row*cell + min(cell, 11), name, true})
		}
		before := -1
		for c := range times {
			step := first + (last-first)*int64(c)/int64(max(times-1, 1))
			grown := int64(math.MinInt64) // the most of the row's ranks, so that a leaking one is visible
			for _, l := range lines[from:to] {
				grown = max(grown, l.growth(l.at(step)))
			}
			level := 0
			if grown > 0 && most > 0 {
				level = min(heatLevels, 1+int(heatLevels*float64(grown)/float64(most)))
			}
			if level == before {
				m.Cells[len(m.Cells)-1].W += wide
				continue
			}
			before = level
			m.Cells = append(m.Cells, heatCell{left + c*wide, row * cell, wide, cell - 1, level, fmt.Sprintf("%s, step %d: %s", name, step, size(grown))})
		}
	}
	m.Labels = append(m.Labels, heatLabel{left, m.Height - 4, fmt.Sprintf("step %d", first), false}, heatLabel{m.Width, m.Height - 4, fmt.Sprintf("step %d", last), true})
	m.Legend = "Growth since the first snapshot:"
	if len(lines) > rows {
		m.Legend = fmt.Sprintf("Growth since the first snapshot, the most of each %d ranks or so:", (len(lines)+rows-1)/rows)
	}
	for i := range heatLevels {
		m.Steps = append(m.Steps, i+1)
	}
	err = m.ranks(s, r, lines, most)
	return m, err
}

// ranks adds the sentence about the ranks, and small plots of those that differ most from their peers.
func (m *heatMap) ranks(s *Store, r Run, lines []line, most int64) error {
	ranks, err := s.Ranks(r.ID)
	if err != nil {
		return err
	}
	if len(ranks) < 2 {
		return nil
	}
	m.Sentence = fmt.Sprintf("%s; %s.", plural(len(ranks), "rank"), cmp.Or(strings.Join(sayings(Unlike(ranks)), "; "), "none is unlike its peers"))
	slopes := make([]float64, len(ranks))
	for i := range ranks {
		slopes[i] = ranks[i].Slope
	}
	center, _ := middle(slopes)
	slices.SortStableFunc(ranks, func(a, b Rank) int { return cmp.Compare(math.Abs(b.Slope-center), math.Abs(a.Slope-center)) })
	for _, k := range ranks[:min(len(ranks), pageSparks)] {
		at := slices.IndexFunc(lines, func(l line) bool { return l.rank == k.Rank })
		if at < 0 {
			continue
		}
		l := &lines[at]
		var points []string
		span := float64(max(1, l.steps[len(l.steps)-1]-l.steps[0]))
		for i := range l.steps {
			x := 120 * float64(l.steps[i]-l.steps[0]) / span
			y := 38 - 36*math.Max(0, float64(l.growth(i)))/float64(max(1, most))
			points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
		}
		name := "rank " + rankText(k.Rank)
		slope := snapshot.FormatBytes(k.Slope) + "/step"
		m.Sparks = append(m.Sparks, spark{name, slope, strings.Join(points, " "), name + ": " + slope + ", " + size(k.Growth) + " in all"})
	}
	return nil
}
