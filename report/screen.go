package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// Screen is what a terminal shows of a run that is watched.
type Screen struct {
	Run    *snapshot.Run
	Result *diff.Result // nil for fewer than three snapshots
	Sites  []*diff.Finding
	// State is what is said of a site now; "" for its verdict.
	State  func(*diff.Finding) string
	By     ScreenOrder
	Cursor int      // the site that is chosen
	Opened bool     // all is said of it, in place of the list
	Events []string // the last ones, the newest last
	Said   string   // what the last key did
	Now    time.Time
	Here   Folder

	Width, Height int
	Color         bool
}

// ScreenOrder is the order of the sites.
type ScreenOrder int

// The orders.
const (
	ByRate ScreenOrder = iota
	ByLive
	ByGrowth
	orders
)

// Next is the order after this one.
func (o ScreenOrder) Next() ScreenOrder { return (o + 1) % orders }

func (o ScreenOrder) String() string { return [...]string{"rate", "live memory", "growth"}[o] }

// ScreenSites are all sites that grew, those of other processes too: leaks first, each kind in this order, the largest
// first.
func ScreenSites(r *diff.Result, by ScreenOrder, state func(*diff.Finding) string) []*diff.Finding {
	type site struct {
		*diff.Finding
		rank int
		size float64
	}
	var all []site
	add := func(findings []diff.Finding) {
		for i := range findings {
			f := &findings[i]
			s := site{f, slices.Index([]string{string(LiveLeak), string(LiveSuspected)}, state(f)), 0}
			if s.rank < 0 {
				s.rank = len(orderOfVerdicts) + slices.Index(orderOfVerdicts[:], f.Verdict)
			}
			switch by {
			case ByRate:
				s.size = f.Rate.Bytes.Value
			case ByLive:
				s.size = float64(f.After().Bytes)
			default:
				s.size = float64(f.Growth().Bytes)
			}
			all = append(all, s)
		}
	}
	add(r.Findings)
	for _, c := range r.Children {
		add(c.Result.Findings)
	}
	slices.SortStableFunc(all, func(a, b site) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.size, a.size)) })
	out := make([]*diff.Finding, len(all))
	for i, s := range all {
		out[i] = s.Finding
	}
	return out
}

var orderOfVerdicts = [...]diff.Verdict{diff.Leak, diff.Inconclusive, diff.Bounded, diff.Clean}

// Lines are the screen's, Height at most, none wider than Width.
func (s *Screen) Lines() []string {
	paint := painter(s.Color)
	head := []string{paint.bold(s.title())}
	head = append(head, s.meters()...)
	foot := []string{paint.dim("↑ ↓ choose · enter stack · s sort by " + s.By.Next().String() + " · r report · q quit")}
	if s.Opened {
		foot[0] = paint.dim("esc back · r report · q quit")
	}
	if s.Said != "" {
		foot = append(foot, s.Said)
	}
	events := s.Events[max(0, len(s.Events)-max(1, s.Height/5)):]
	room := s.Height - len(head) - len(events) - len(foot) - 2
	var body []string
	switch {
	case s.Result == nil:
		body = []string{"no verdict before the third snapshot"}
	case s.Opened && s.Cursor < len(s.Sites):
		body = s.opened()
	default:
		body = s.list(max(1, room))
	}
	if room > 0 && len(body) > room {
		body = append(body[:room-1], "…")
	}
	lines := slices.Concat(head, []string{""}, body)
	for len(lines) < s.Height-len(events)-len(foot)-1 {
		lines = append(lines, "")
	}
	lines = slices.Concat(lines, []string{""}, events, foot)
	for i, line := range lines {
		lines[i] = cutLine(unglued(line), s.Width)
	}
	return lines[:min(len(lines), max(1, s.Height))]
}

func (s *Screen) title() string {
	text := s.Run.Path
	if len(s.Run.Info.Command) > 0 {
		text += " · " + Printable(strings.Join(s.Run.Info.Command, " "))
	}
	n := len(s.Run.Snapshots)
	if n == 0 {
		return text
	}
	last := s.Run.Snapshots[n-1].Mark
	if last.Step != snapshot.NoStep {
		text += " · step " + grouped(last.Step)
	}
	if !last.Time.IsZero() && s.Run.Info.Finished == nil {
		text += " · " + max(0, s.Now.Sub(last.Time)).Round(time.Second).String() + " ago"
	}
	return text
}

// meters are a line for each device, for the processes by role, and when memory is full.
func (s *Screen) meters() (lines []string) {
	if r := s.Result; r != nil {
		for i, d := range r.Series.Devices {
			live := make([]float64, len(r.Series.Marks))
			for at, m := range r.Series.Meters[i] {
				live[at] = float64(m.Allocated)
			}
			line := fmt.Sprintf("%-10s live %10s %s", deviceName(d), snapshot.Bytes(live[len(live)-1]), sparkline(live))
			if d.Meters.Reserved > 0 {
				line += "  reserved " + d.Meters.Reserved.String()
			}
			if d.Limit > 0 {
				line += "  of " + d.Limit.String()
			}
			lines = append(lines, line)
		}
		for _, f := range s.Sites {
			if text := fullText(f.RunsOut); text != "" {
				lines = append(lines, text+", if "+unglued(atPlace(f))+" goes on")
				break
			}
		}
	}
	if roles := rolesText(s.Run.Tree); roles != "" {
		lines = append(lines, "processes: "+roles)
	}
	return lines
}

// rolesText is the private memory of the processes that are there, by role, the largest first.
func rolesText(tree *snapshot.Tree) string {
	var parts []string
	for _, r := range diff.RolesNow(tree) {
		text := Printable(r.Name)
		if r.Count > 1 {
			text += fmt.Sprintf(" ×%d", r.Count)
		}
		parts = append(parts, text+" "+r.Private.String())
	}
	return strings.Join(parts, " · ")
}

// list is the table of sites around the one that is chosen, in so many lines.
func (s *Screen) list(room int) []string {
	if len(s.Sites) == 0 {
		return []string{"nothing has grown"}
	}
	paint := painter(s.Color)
	const form = "%s %-13s %16s %10s  %-30s %s"
	lines := []string{paint.dim(fmt.Sprintf(form, " ", "verdict", "rate", "live", "held by", "allocated"))}
	rows := max(1, room-1)
	from := max(0, min(s.Cursor-rows/2, len(s.Sites)-rows))
	for i, f := range s.Sites[from:min(len(s.Sites), from+rows)] {
		mark := " "
		if from+i == s.Cursor {
			mark = ">"
		}
		holder := ""
		if f.Holder != nil {
			holder = Printable(f.Holder.Path)
		}
		said := cmp.Or(s.State(f), string(f.Verdict))
		line := fmt.Sprintf(form, mark, said, unglued(bytesRate(f.Rate)), f.After().Bytes, ellipsis(holder, 30), s.Here.Text(unglued(atPlace(f))))
		switch said {
		case string(LiveLeak):
			line = paint.red(line)
		case string(LiveSuspected):
			line = paint.yellow(line)
		}
		lines = append(lines, line)
	}
	return lines
}

// opened is all that is said of the site that is chosen.
func (s *Screen) opened() []string {
	f, in := s.Sites[s.Cursor], s.Result
	if f.Child != nil {
		in = f.Child.Result
	}
	p := newPage(TextOptions{Width: s.Width, Color: s.Color})
	p.finding(in, f, TextOptions{Width: s.Width, Color: s.Color, All: true})
	return strings.Split(strings.TrimRight(s.Here.Text(p.buf.String()), "\n"), "\n")
}

// ellipsis leaves the middle of a long name out.
func ellipsis(name string, width int) string {
	r := []rune(name)
	if len(r) <= width {
		return name
	}
	return string(r[:width/2-1]) + "…" + string(r[len(r)-(width-width/2):])
}

// cutLine is a line of so many columns at most; its colour ends with it.
func cutLine(line string, width int) string {
	if width <= 0 || visible(line) <= width {
		return line
	}
	var b strings.Builder
	n, coloured := 0, false
	for i := 0; i < len(line); {
		if strings.HasPrefix(line[i:], "\x1b[") {
			end := i + strings.IndexByte(line[i:], 'm') + 1
			coloured = true
			b.WriteString(line[i:end])
			i = end
			continue
		}
		_, size := utf8.DecodeRuneInString(line[i:])
		if n++; n > width {
			break
		}
		b.WriteString(line[i : i+size])
		i += size
	}
	if coloured {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}
