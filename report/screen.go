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

// Screen is the content of a terminal that shows a watched run.
type Screen struct {
	Run    *snapshot.Run
	Result *diff.Result // nil with fewer than three snapshots
	Sites  []*diff.Finding
	// State is the state of a site now; "" for its verdict.
	State  func(*diff.Finding) string
	By     ScreenOrder
	Cursor int      // the selected site
	Opened bool     // whether its details are shown, in place of the list
	Top    int      // the first line of the details that is shown
	Events []string // the latest events, the newest last
	Said   string   // the effect of the last key
	Ended  bool     // whether the run has ended, so that nothing changes any more
	Rank   int      // one of Ranks; snapshot.NoRank if there is only one
	Ranks  int
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

// ScreenSites lists all sites that grew, including those of other processes: leaks first, and within a kind in the chosen order, the
// largest first.
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

// Lines are the screen's lines: at most Height, none wider than Width.
func (s *Screen) Lines() []string {
	head, events, foot := s.frame()
	room := s.room()
	var body []string
	switch {
	case s.Result == nil:
		body = []string{"no verdict before the third snapshot"}
	case s.Opened && s.Cursor < len(s.Sites):
		body = s.opened()
		body = body[min(s.Top, len(body)-1):]
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
	if over := len(lines) - s.Height; over > 0 && s.Height > len(foot) {
		lines = slices.Delete(lines, s.Height-len(foot), len(lines)-len(foot)) // the keys stay
	}
	for i, line := range lines {
		lines[i] = cutLine(unglued(line), s.Width)
	}
	return lines[:min(len(lines), max(1, s.Height))]
}

// frame is what is shown above and below the list.
func (s *Screen) frame() (head, events, foot []string) {
	paint := painter(s.Color)
	head = append([]string{paint.bold(s.title())}, s.meters()...)
	foot = []string{paint.dim(s.keys())}
	if s.Said != "" {
		foot = append(foot, Printable(s.Said))
	}
	for _, e := range s.Events[max(0, len(s.Events)-max(1, s.Height/5)):] {
		events = append(events, Printable(e))
	}
	return head, events, foot
}

// room is how many lines the list has, between two empty ones.
func (s *Screen) room() int {
	head, events, foot := s.frame()
	return s.Height - len(head) - len(events) - len(foot) - 2
}

// Scroll scrolls the details of the selected site, within their bounds.
func (s *Screen) Scroll(by int) {
	if s.Opened && s.Cursor < len(s.Sites) {
		s.Top = max(0, min(s.Top+by, len(s.opened())-max(1, s.room())))
	}
}

// keys lists the keys that work now.
func (s *Screen) keys() string {
	if s.Opened {
		return "q quit · esc back · ↑ ↓ scroll · r report"
	}
	text := "q quit · ↑ ↓ choose · enter stack · s sort by " + s.By.Next().String()
	if s.Ranks > 1 {
		text += " · n next rank"
	}
	return text + " · r report"
}

func (s *Screen) title() string {
	text := brief(s.Run.Path)
	if s.Ranks > 1 {
		text += fmt.Sprintf(" · rank %d of %d", s.Rank, s.Ranks)
	}
	if len(s.Run.Info.Command) > 0 {
		text += " · " + brief(strings.Join(s.Run.Info.Command, " "))
	}
	n := len(s.Run.Snapshots)
	if n == 0 {
		return text
	}
	last := s.Run.Snapshots[n-1].Mark
	if last.Step != snapshot.NoStep {
		text += " · step " + grouped(last.Step)
	}
	switch {
	case s.Ended:
		text += " · ended"
	case !last.Time.IsZero():
		text += " · " + max(0, s.Now.Sub(last.Time)).Round(time.Second).String() + " ago"
	}
	return text
}

// meters is a line for each device, as far as there is room, then the processes by role, and when memory is full.
func (s *Screen) meters() (lines []string) {
	const small = 12 // lines: a smaller terminal shows the first device only
	var more []string
	if roles := rolesText(s.Run.Tree); roles != "" {
		more = append(more, "processes: "+roles)
	}
	for _, f := range s.Sites {
		if text := fullText(f.RunsOut); text != "" && !s.Ended {
			more = append(more, s.Here.Text(text+", if it goes on "+unglued(atPlace(f))))
			break
		}
	}
	if s.Height < small {
		more = nil
	}
	if s.Result == nil {
		return more
	}
	series, room := s.Result.Series, max(1, s.Height/3-len(more))
	for i, d := range series.Devices {
		if i == room-1 && len(series.Devices) > room && room > 1 {
			lines = append(lines, fmt.Sprintf("… and %d more devices", len(series.Devices)-i))
			break
		}
		if i == room {
			break
		}
		live := make([]float64, len(series.Marks))
		for at, m := range series.Meters[i] {
			live[at] = float64(m.Allocated)
		}
		line := fmt.Sprintf("%-10s live %10s %s", deviceName(d), snapshot.Bytes(live[len(live)-1]), sparkline(series.Axis.X, live))
		if d.Meters.Reserved > 0 {
			line += "  reserved " + d.Meters.Reserved.String()
		}
		if d.Limit > 0 {
			line += "  of " + d.Limit.String()
		}
		lines = append(lines, line)
	}
	return append(lines, more...)
}

// rolesText is the private memory of the current processes by role, the largest first.
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

// Columns of the list. A narrow terminal has no holder column, and a narrower one no column of live memory either.
const (
	listFixed  = 33 // "> possible leak  +123.45 MiB/step  "
	liveWide   = 12
	holderWide = 32
	placeWide  = 30 // at least
)

// list is the table of sites around the selected one, in at most room lines.
func (s *Screen) list(room int) []string {
	if len(s.Sites) == 0 {
		return []string{"nothing has grown"}
	}
	paint := painter(s.Color)
	place := max(placeWide, s.Width-listFixed-liveWide-holderWide)
	row := func(mark, said, rate, live, where, holder string) string {
		line := fmt.Sprintf("%s %-13s %16s  ", mark, said, rate)
		if s.Width >= listFixed+liveWide+placeWide {
			line += fmt.Sprintf("%10s  ", live)
		}
		if s.Width < listFixed+liveWide+holderWide+placeWide {
			return line + where
		}
		return line + pad(ellipsis(where, place-2), place) + ellipsis(holder, holderWide)
	}
	var lines []string
	rows := room
	if room > 2 {
		lines, rows = []string{paint.dim(row(" ", "verdict", "rate", "live", "allocated", "held by"))}, room-1
	}
	from := max(0, min(s.Cursor-rows/2, len(s.Sites)-rows))
	for i, f := range s.Sites[from:min(len(s.Sites), from+rows)] {
		mark := " "
		if from+i == s.Cursor {
			mark = ">"
		}
		holder := ""
		if f.Holder != nil {
			holder = brief(f.Holder.Path)
		}
		rate := bytesRate(f.Rate)
		if unsized(f.Rate) {
			rate = blocksRate(f.Rate, noun(f))
		}
		said := cmp.Or(s.State(f), string(f.Verdict))
		line := row(mark, said, unglued(rate), f.After().Bytes.String(), s.Here.Text(unglued(atPlace(f))), holder)
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

// pad fills a text up with spaces.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-visible(text)))
}

// opened is the details of the selected site.
func (s *Screen) opened() (lines []string) {
	f, in := s.Here.finding(s.Sites[s.Cursor]), s.Result
	if f.Child != nil {
		in = f.Child.Result
	}
	p := newPage(TextOptions{Width: s.Width, Color: s.Color})
	p.finding(in, f, TextOptions{Width: s.Width, Color: s.Color, All: true})
	return strings.Split(strings.TrimRight(p.buf.String(), "\n"), "\n")
}

// ellipsis replaces the middle of a long name by an ellipsis.
func ellipsis(name string, width int) string {
	r := []rune(name)
	if len(r) <= width {
		return name
	}
	if width < 4 {
		return string(r[:max(0, width)])
	}
	return string(r[:width/2-1]) + "…" + string(r[len(r)-(width-width/2):])
}

// cutLine cuts a line at a width, and ends its colour there.
func cutLine(line string, width int) string {
	if width <= 0 || visible(line) <= width {
		return line
	}
	var b strings.Builder
	n, coloured := 0, false
	for i := 0; i < len(line); {
		if length := strings.IndexByte(line[i:], 'm') + 1; length > 0 && strings.HasPrefix(line[i:], "\x1b[") {
			coloured = true
			b.WriteString(line[i : i+length])
			i += length
			continue
		}
		_, size := utf8.DecodeRuneInString(line[i:])
		if n++; n == width {
			b.WriteString("…")
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
