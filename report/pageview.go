package report

import (
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// view is the content of a page: strings as they are shown, in the order of the page.
type view struct {
	Policy string
	Script template.JS
	Style  template.CSS

	One         bool   // whether it is about one snapshot
	NoFindings  string // the text if there are none
	Sites       []siteView
	SitesMore   string
	Title, Name string
	State       string // "leak", "inconclusive" or "clean", for colour
	Lead        string
	Moment      []string // the moment of the record that is shown, one sentence each
	Facts       []fact
	Findings    []findingView
	Charts      []chartView
	ChartData   []chartData
	Flame       template.HTML
	FlameAbout  string
	Devices     []deviceView
	Reserves    []string // reserved memory that grows alone
	Course      []string // how steady the devices are, and what their peaks depend on
	Ages        *agesView
	Maps        []mapView
	ElseTitle   string
	Else        []elseView
	ElseMore    string
	Totals      []totalView
	Ranks       []rankView
	Missing     []string
	Commands    []string
	Origin      []fact
	Version     string
}

// TitleParts is the title, cut after the folders of a place: a narrow page broke "train.py:80" within its number.
func (v *view) TitleParts() []string {
	const cut = "\x00"
	return strings.Split(titlePlace.ReplaceAllStringFunc(v.Title, func(place string) string { return strings.ReplaceAll(place, "/", "/"+cut) }), cut)
}

var titlePlace = regexp.MustCompile(`\S+/\S+:\d+`)

type siteView struct{ Blocks, Bytes, Share, Where string }

type fact struct{ Label, Text string }

// piece is a part of a fact's text: code or words.
type piece struct {
	Text string
	Code bool
}

// Pieces splits the text; code is between backticks.
func (f fact) Pieces() []piece {
	parts := strings.Split(f.Text, "`")
	if len(parts)%2 == 0 {
		return []piece{{Text: f.Text}} // a single backtick is no quote
	}
	var out []piece
	for i, part := range parts {
		if part != "" {
			out = append(out, piece{part, i%2 == 1})
		}
	}
	return out
}

type findingView struct {
	Verdict, Badge   string
	Place, Function  string
	Held             string // for one snapshot, in place of the growth
	Rate, BlocksRate string
	Growth, Exact    string
	Fate             string
	Remedy           []fact // who holds it, why, and how to fix it
	Stack            []frameView
	Whole            []frameView // the stack with all its frames; nil if Stack has them
	Label            string      // a name if there is no Place
	Mark             string      // beside the guilty line
	Together         []elseView  // all its stacks, if there are several
	TogetherMore     string
	Common           string // why they are one leak
	Facts            []fact
}

type frameView struct {
	Place, Function string
	Skipped         string // in place of a frame
	Guilty, Library bool
}

type elseView struct{ Blocks, Bytes, Verdict, Where string }

type totalView struct {
	Blocks, Bytes, Name string
	All                 bool
}

type rankView struct {
	Rank                         int
	Verdict, State, Growth, Live string
	Where                        string
}

func pageView(r *diff.Result, about About) *view {
	s := storyOf(r, TextOptions{Top: 20})
	v := &view{
		Title: Headline(r), Name: nameOf(about), Version: brief(about.Version),
		Missing: missing(r.Last, r.Series.Axis.Unit, slices.Concat(r.NotSeen, r.Notes), s.least), Totals: totalsView(r, s),
	}
	v.State, _ = state(r)
	v.Lead = lead(r)
	if text := OutOfMemory(r.Refused); text != "" {
		v.Moment = []string{upperFirst(text)}
	}
	v.Facts = factsOf(r)
	for _, f := range s.leaks {
		v.Findings = append(v.Findings, findingViewOf(f.in, f.Finding))
	}
	for _, e := range s.grown {
		v.Findings = append(v.Findings, processView(e))
	}
	for _, f := range s.maybe {
		v.Findings = append(v.Findings, findingViewOf(f.in, f.Finding))
	}
	v.NoFindings, v.ElseTitle = "No stack kept growing.", s.title
	if !r.Comparable {
		v.NoFindings = "No verdict: the snapshots cannot be compared."
	}
	v.Else, v.ElseMore = elseViews(s.listed)
	v.Charts, v.ChartData = chartViews(r)
	svg, text := embeddedFlame(GrowthProfile(r), pageBoxes)
	v.Flame, v.FlameAbout = template.HTML(svg), text //nolint:gosec // Flame escapes every name in it
	v.Devices = deviceViews(r.First, r.Last)
	for _, e := range s.reserves {
		v.Reserves = append(v.Reserves, upperFirst(reserveText(e)))
	}
	for _, s := range r.Steady() {
		v.Course = append(v.Course, upperFirst(steadyText(&s)))
	}
	for _, d := range r.Demand() {
		v.Course = append(v.Course, upperFirst(demandText(&d)))
	}
	sites := leaksOf(r)
	v.Ages, v.Maps = agesViewOf(r.Last, sites, r.Series), mapViews(r.Last, sites)
	for _, rank := range about.Ranks {
		v.Ranks = append(v.Ranks, rankViewOf(rank))
	}
	v.again(r.Last, about)
	return v
}

// again says what was run, and how to reproduce the page.
func (v *view) again(s *snapshot.Snapshot, about About) {
	for _, c := range about.Commands {
		v.Commands = append(v.Commands, Printable(c))
	}
	v.Origin = originOf(s, about.Info)
}

func nameOf(about About) string {
	if about.Name == "" {
		return "memory of a training run"
	}
	return brief(about.Name)
}

// state is the verdict on the whole run, as a class and as a word.
func state(r *diff.Result) (class, badge string) {
	switch {
	case r.Leaks() > 0:
		return "leak", count(int64(r.Leaks()), "leak")
	case len(r.Children) > 0:
		return "leak", count(int64(r.Children[0].Result.Leaks()), "leak")
	case r.Count(diff.Inconclusive) > 0 || len(r.Unaccounted()) > 0:
		return "inconclusive", "inconclusive"
	case strings.HasPrefix(sentence(r), "inconclusive"):
		return "inconclusive", "inconclusive"
	}
	return "clean", "no leak"
}

func lead(r *diff.Result) string {
	first, last := names(r)
	text := fmt.Sprintf("Compares %s with %s%s; recorded by %s%s.", first, last, between(r), producer(r.Last), ruleText(r))
	if a := r.Across; a != nil && len(a.Leaks) > 0 {
		text += fmt.Sprintf(" Of %d ranks it shows rank %d, which leaks most.", len(a.Ranks), r.Last.Rank)
	} else if a != nil && len(r.Children) > 0 {
		text += fmt.Sprintf(" Of %d ranks it shows rank %d. Processes beside them leak.", len(a.Ranks), r.Last.Rank)
	} else if a != nil {
		text += fmt.Sprintf(" None of %d ranks leaks; it shows rank %d.", len(a.Ranks), r.Last.Rank)
	}
	return text
}

func factsOf(r *diff.Result) []fact {
	g := r.Growth()
	facts := []fact{{"live memory" + ofWhom(r), changeText(g.Bytes)}}
	if r.First.Mark.Step != snapshot.NoStep && r.Last.Mark.Step != snapshot.NoStep {
		facts = append(facts, fact{"steps", grouped(r.First.Mark.Step) + " to " + grouped(r.Last.Mark.Step)})
	}
	for _, d := range r.Last.Devices {
		if !unused(d.Meters) {
			facts = append(facts, liveFact(r.Last, d))
		}
	}
	for i := range r.Findings {
		if at := r.Findings[i].RunsOut; at != nil {
			facts = append(facts, fact{"runs out", atText(at, r.Findings[i].Rate.Unit)})
			break
		}
	}
	if r.Last.Rank != snapshot.NoRank {
		facts = append(facts, fact{"rank", strings.TrimPrefix(rankOf(r), "rank ")})
	}
	return append(facts, fact{"call sites", grouped(int64(len(r.Rows)))})
}

func findingViewOf(r *diff.Result, f *diff.Finding) findingView {
	g := f.Growth()
	first, _ := names(r)
	v := findingView{
		Verdict: string(f.Verdict), Badge: badge(f),
		Place: inChild(f) + place(f.Rows[0], f.Headline), Rate: bytesRate(f.Rate), BlocksRate: blocksRateOf(f),
		Growth: estimate(f, signed(grown(f))), Exact: exactly(f, g.Bytes),
		Fate: births(f, first),
	}
	if f.Headline >= 0 {
		v.Function = besidePlace(f.Rows[0].Frames[f.Headline])
	}
	v.Mark = guiltyMark(f)
	v.Together, v.TogetherMore = togetherViews(f)
	v.Common = common(f)
	v.stack(f)
	var facts []fact
	if text := liveText(r, f); text != "" {
		facts = []fact{{"Live now", text}}
	}
	v.divide(append(facts, findingFacts(r, f)...))
	return v
}

// processView is growth of the process that no stack explains, as a finding.
func processView(e *diff.Reserve) findingView {
	v := findingView{
		Verdict: string(diff.Inconclusive), Badge: "line unknown", Label: "the process (" + deviceName(e.Device) + ")",
		Rate: bytesRate(e.Rate), Growth: signed(e.Growth), Fate: "beyond what recorded stacks explain",
		Facts: []fact{{"Why", upperFirst(brief(e.String())) + "."}},
	}
	if at := e.Line(); at != nil {
		v.Badge, v.Label = "possible leak", "native code at "+brief(spot(*at))
	}
	if p := e.Processes; p != nil {
		v.Label, v.Fate = "the process "+brief(p.Role), p.Known()
	}
	v.divide(append(reserveFacts(e), v.Facts...))
	return v
}

func badge(f *diff.Finding) string { return string(f.Verdict) + ", " + string(f.Evidence) }

// stack sets the calls that matter, and all calls if those are more.
func (v *findingView) stack(f *diff.Finding) {
	frames := f.Rows[0].Frames
	v.Stack = stackView(frames, f.Headline, false)
	if all := stackView(frames, f.Headline, true); len(all) > len(v.Stack) {
		v.Whole = all
	}
}

// divide puts first what to do, and the evidence after the stack.
func (v *findingView) divide(facts []fact) {
	v.Remedy, v.Facts = nil, nil
	for _, f := range plainFacts(facts) {
		switch f.Label {
		case "Held by", "Cause", "If it leaks", "Fix", "More", "Runs out":
			v.Remedy = append(v.Remedy, f)
		default:
			v.Facts = append(v.Facts, f)
		}
	}
}

func stackView(frames []snapshot.Frame, headline int, all bool) []frameView {
	var out []frameView
	for _, l := range stackLines(frames, headline, all) {
		if l.frame == nil {
			out = append(out, frameView{Skipped: count(int64(l.skipped), l.what), Library: true})
			continue
		}
		out = append(out, frameView{Place: location(*l.frame), Function: besidePlace(*l.frame), Guilty: l.headline, Library: l.library})
	}
	return out
}

// plainFacts replaces the no-break spaces in facts.
func plainFacts(facts []fact) []fact {
	for i := range facts {
		facts[i].Text = strings.ReplaceAll(facts[i].Text, noBreak, " ")
	}
	return facts
}

func elseViews(findings []*diff.Finding) (rows []elseView, more string) {
	shown := min(len(findings), pageRows)
	wheres := make([]where, shown)
	for i, f := range findings[:shown] {
		wheres[i] = whereFound(f)
	}
	for i, text := range placesApart(wheres) {
		f := findings[i]
		g := f.Growth()
		rows = append(rows, elseView{grownBlocks(g.Blocks, f.Uncounted), signed(g.Bytes), string(f.Verdict), strings.ReplaceAll(text, noBreak, " ")})
	}
	if rest := findings[shown:]; len(rest) > 0 {
		more = count(int64(len(rest)), "more call site") + ", " + signed(growthOf(rest).Bytes)
	}
	return rows, more
}

// togetherViews lists the stacks of a finding that has several.
func togetherViews(f *diff.Finding) (rows []elseView, more string) {
	if len(f.Rows) < 2 {
		return nil, ""
	}
	shown := min(len(f.Rows), pageRows)
	wheres := make([]where, shown)
	for i, row := range f.Rows[:shown] {
		wheres[i] = whereOf(row.Frames, row.Label)
	}
	for i, text := range placesApart(wheres) {
		g := f.Rows[i].Growth()
		rows = append(rows, elseView{Blocks: grownBlocks(g.Blocks, f.Uncounted), Bytes: signed(g.Bytes), Where: strings.ReplaceAll(text, noBreak, " ")})
	}
	if rest := f.Rows[shown:]; len(rest) > 0 {
		more = count(int64(len(rest)), "more stack") + ", " + signed((&diff.Finding{Rows: rest}).Growth().Bytes)
	}
	return rows, more
}

func totalsView(r *diff.Result, s *story) []totalView {
	var rows []totalView
	for _, a := range s.accounts {
		rows = append(rows, totalView{Blocks: grownBlocks(a.growth.Blocks, r.Uncounted()), Bytes: signed(a.growth.Bytes), Name: count(int64(a.sites), "call site") + ": " + a.name})
	}
	g := s.total
	return append(rows, totalView{grownBlocks(g.Blocks, r.Uncounted()), signed(g.Bytes), "in all", true})
}

func rankViewOf(rank RankResult) rankView {
	v := rankView{Rank: rank.Rank, State: "inconclusive", Verdict: "not judged", Where: brief(rank.Why)}
	r := rank.Result
	if r == nil {
		return v
	}
	v.State, v.Verdict = state(r)
	v.Growth = signed(r.Growth().Bytes)
	var live snapshot.Bytes
	for _, d := range r.Last.Devices {
		live += d.Meters.Allocated
	}
	v.Live = live.String()
	if len(r.Findings) > 0 && r.Findings[0].Verdict != diff.Bounded && r.Comparable {
		f := &r.Findings[0]
		v.Where = bytesRate(f.Rate) + " at " + place(f.Rows[0], f.Headline)
	}
	return v
}

// missing says what the files lack: the notes, what is missing in s, and the smallest leak that could be shown, unless that is "". unit
// is the unit of growth; "" if unknown.
func missing(s *snapshot.Snapshot, unit diff.Unit, notes []string, least string) []string {
	var out []string
	for _, n := range notes {
		out = append(out, brief(n))
	}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	var bare, undated, live snapshot.Bytes
	for i, st := range s.Blocks.State {
		if st != snapshot.Live {
			continue
		}
		live += s.Blocks.Size[i]
		if s.Blocks.Stack[i] == snapshot.NoStack {
			bare += s.Blocks.Size[i]
		}
		if !hasBirth(&s.Blocks, i) {
			undated += s.Blocks.Size[i]
		}
	}
	if bare > 0 {
		say("%s of %s live have no recorded stack (%s)", bare, live, share(bare, live))
	}
	if undated > 0 {
		say("%s of %s live have no recorded birth (%s)", undated, live, share(undated, live))
	}
	if h := s.History; h.LostFrees > 0 {
		say("the history of allocations is incomplete: %s of blocks allocated before it", count(h.LostFrees, "free"))
	}
	if unit == diff.Place {
		say("steps and times: rates are per snapshot, and there is no forecast")
	}
	process := slices.ContainsFunc(s.Devices, func(d snapshot.Device) bool { return d.Kind == snapshot.Process })
	limited := slices.ContainsFunc(s.Devices, func(d snapshot.Device) bool { return d.Kind == snapshot.Process && d.Limit > 0 })
	for _, d := range s.Devices {
		if unused(d.Meters) {
			continue
		}
		if d.Limit <= 0 && !(limited && d.Kind.InProcess()) {
			say("the limit of %s is unknown: there is no forecast", deviceName(d))
		}
		switch {
		case d.Meters.Driver != snapshot.Unknown, d.Kind.InProcess() && process:
		case s.Blocks.Count != nil && d.Kind.InProcess(): // a heap has no driver
			say("memory of the process outside %s is not in the file", deviceName(d))
		default:
			say("the driver's figure for %s was not read: memory outside the allocator is not shown", deviceName(d))
		}
	}
	if len(s.Holders) == 0 {
		say("holders: the recorder did not search, or found none")
	}
	if least != "" {
		say("%s", least)
	}
	return out
}

func hasBirth(b *snapshot.Blocks, row int) bool {
	return b.BirthStep != nil && b.BirthStep[row] != snapshot.NoStep || b.BirthTime != nil && b.BirthTime[row] > 0 || b.BirthEvent != nil && b.BirthEvent[row] > 0
}

// originOf is what was run, as far as known.
func originOf(s *snapshot.Snapshot, info snapshot.Info) []fact {
	var out []fact
	add := func(label, text string) {
		if text != "" {
			out = append(out, fact{label, text})
		}
	}
	add("workload", brief(info.Workload))
	if len(info.Command) > 0 {
		add("command", brief(strings.Join(info.Command, " ")))
	}
	add("backend", brief(info.Backend))
	if info.Workload != "" {
		add("seed", fmt.Sprint(info.Seed))
	}
	add("host", brief(info.Host))
	if !info.Started.IsZero() {
		add("started", info.Started.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	add("recorded by", producer(s))
	if info.Version != "" {
		add("with", "memdiag "+brief(info.Version))
	}
	return out
}
