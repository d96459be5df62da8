package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// Text writes the report for a terminal: one sentence with the verdict, each leak in the handbook's shape, a table of the other changes
// whose rows sum to the growth, the meters, and notes. Names of places are not cut, except for the middle of names of more than 400
// characters. A path wider than o.Width is folded at its slashes.
func Text(w io.Writer, r *diff.Result, o TextOptions) error {
	p := newPage(o)
	text, paint := sentence(r), p.paint.green
	switch {
	case r.Leaks() > 0 || len(r.Children) > 0:
		paint = p.paint.red
	case len(withVerdict(r, diff.Inconclusive)) > 0 || strings.HasPrefix(text, "inconclusive"):
		paint = p.paint.yellow
	}
	verdict, rest, _ := strings.Cut(text, " ")
	if r.Leaks() == 0 && len(r.Children) == 0 {
		verdict, rest = text, ""
	}
	p.prose("", "  ", strings.TrimSpace(paint(verdict)+" "+rest))
	p.outOfMemory(r.Refused)
	first, last := names(r)
	p.prose("", "  ", fmt.Sprintf("compared: %s with %s%s, recorded by %s%s",
		first, last, between(r), glue(producer(r.Last)), ruleText(r)))
	s := storyOf(r, o)
	p.findings(s.leaks, o)
	for _, e := range s.grown {
		p.reserve(e)
	}
	p.findings(s.maybe, o)
	p.line("")
	p.elseGrew(s.title, s.listed, o)
	p.ranks(r)
	p.totals(r, s)
	p.meters(r, s.reserves)
	if o.All {
		p.steady(r)
	}
	for _, d := range r.Demand() {
		p.line("")
		p.prose("", "  ", demandText(&d))
	}
	for _, known := range r.Known {
		p.line("")
		p.prose("known leak: ", "  ", brief(known))
	}
	for _, text := range []string{s.least, NotSeen(r)} {
		if text != "" {
			p.line("")
			p.prose("", "  ", text)
		}
	}
	if notes := r.Notes; len(notes) > 0 {
		p.line("")
		for _, n := range notes {
			p.prose("note: ", "      ", brief(n))
		}
	}
	return p.writeTo(w)
}

// ruleText names the rule if it is not the default.
func ruleText(r *diff.Result) string {
	if r.Rule == diff.ByTrend {
		return ""
	}
	return "; rule: " + string(r.Rule)
}

func producer(s *snapshot.Snapshot) string {
	if s.Producer == "" {
		return "an unnamed producer"
	}
	return brief(s.Producer)
}

func (p *page) findings(list []said, o TextOptions) {
	for _, f := range list {
		p.line("")
		p.finding(f.in, f.Finding, o)
	}
}

func (p *page) finding(r *diff.Result, f *diff.Finding, o TextOptions) {
	head := p.paint.red("Potential leak detected" + strings.TrimSuffix(" "+inChild(f), " ") + ":")
	switch f.Verdict {
	case diff.Inconclusive:
		head = p.paint.yellow("Possible leak:")
		if f.Bound != nil {
			head = p.paint.green("Below its declared bound:")
		}
	case diff.Bounded, diff.Clean:
		head = p.paint.green("No leak:")
	}
	p.aside(head, fmt.Sprintf("(verdict: %s, %s; %s)", f.Verdict, f.Evidence, ratesText(f)))
	p.stack(f, o.All)
	p.size(r, f)
	p.together(f, o)
	for _, fact := range findingFacts(r, f) {
		if o.All || fact.Label != testLabel && fact.Label != hashLabel {
			p.labelled(fact.Label, fact.Text)
		}
	}
}

func (p *page) labelled(label, text string) { p.prose(label+": ", "  ", text) }

// stack draws the calls outermost first, with the guilty line marked.
func (p *page) stack(f *diff.Finding, all bool) {
	lines := stackLines(f.Rows[0].Frames, f.Headline, all)
	if len(lines) == 0 {
		p.prose("-> ", "   ", brief(f.Rows[0].Label))
		return
	}
	for i, l := range lines {
		lead := " |- "
		if i == 0 {
			lead = "-> "
		}
		if l.frame == nil {
			p.line(p.paint.dim(fmt.Sprintf("%s… %s", lead, count(int64(l.skipped), l.what))))
			continue
		}
		text := frameText(*l.frame, glue(location(*l.frame)))
		switch {
		case l.headline:
			text = p.paint.bold(text) + " " + p.paint.red(glue("  <- "+guiltyMark(f)))
		case l.library:
			text = p.paint.dim(text)
		}
		p.prose(lead, "     ", text)
	}
}

// size says what grew, in the handbook's line, and how much the program had requested if the allocator took more.
func (p *page) size(r *diff.Result, f *diff.Finding) {
	g := f.Growth()
	first, _ := names(r)
	note := births(f, first)
	switch {
	case ofNodes(f):
		p.labelled("Nodes", grouped(g.Blocks)+" or more")
	case ofItems(f):
		of := noun(f)
		p.labelled(strings.ToUpper(of[:1])+of[1:]+"s", "+"+grouped(g.Blocks))
	case unsized(f.Rate):
		p.aside("Allocation size: unknown", "("+note+")")
	default:
		p.aside("Allocation size: "+estimate(f, g.Bytes.String()), "("+join(exactly(f, g.Bytes), note)+")")
	}
	if g.Requested != g.Bytes && g.Requested != 0 {
		p.aside("Requested size: "+estimate(f, g.Requested.String()), "("+join(exactly(f, g.Requested), "the rest is the allocator's rounding")+")")
	}
	if text := liveText(r, f); text != "" {
		p.labelled("Live now", text)
	}
}

// common is why a finding's stacks are one leak.
func common(f *diff.Finding) string {
	if f.Joined > 0 {
		return "one holder retains"
	}
	return "grow together"
}

// together lists the stacks of a finding that has several.
func (p *page) together(f *diff.Finding, o TextOptions) {
	if len(f.Rows) < 2 {
		return
	}
	p.prose("", "  ", fmt.Sprintf("Allocated by %s that %s:", count(int64(len(f.Rows)), "stack"), common(f)))
	shown := len(f.Rows)
	if !o.All {
		shown = min(shown, 5)
	}
	wheres := make([]where, shown)
	for i, row := range f.Rows[:shown] {
		wheres[i] = whereOf(row.Frames, row.Label)
	}
	var rows [][]string
	for i, text := range placesApart(wheres) {
		g := f.Rows[i].Growth()
		rows = append(rows, []string{"  " + grownBlocks(g.Blocks, f.Uncounted), signed(g.Bytes), text})
	}
	if rest := f.Rows[shown:]; len(rest) > 0 {
		g := (&diff.Finding{Rows: rest}).Growth()
		rows = append(rows, []string{"  " + grownBlocks(g.Blocks, f.Uncounted), signed(g.Bytes), "… " + count(int64(len(rest)), "more stack")})
	}
	p.table([]column{{"  blocks", true}, {"bytes", true}, {"where", false}}, rows)
}

// held says what keeps the blocks alive: the holder that a recorder found, and the classes of reference on the blocks.
func held(f *diff.Finding) string {
	text := heldBy(f.Holder, f.Owners())
	if h := f.Partly; h != nil {
		text = join(text, fmt.Sprintf("%s %s, at most %s of them; the holder of the others is unknown",
			holderKind(h), glue("`"+brief(h.Path)+"`"), grouped(int64(max(1, h.Items)))))
	}
	return text
}

// holderKind is the text before a holder's path: its kind, or what is in it that holds the blocks.
func holderKind(h *snapshot.Holder) string {
	switch {
	case h.Kind == "graph" && h.Items > 0:
		return "graphs in"
	case h.Kind == "graph":
		return "graph of"
	}
	return brief(h.Kind)
}

func heldBy(h *snapshot.Holder, classes snapshot.Owners) string {
	text := ""
	switch {
	case h != nil && h.Kind == snapshot.Nodes:
		text = "graph " + glue("`"+brief(h.Path)+"`") + glue(fmt.Sprintf(" (%s or more)", count(int64(h.Items), "node")))
	case h != nil && h.Path == snapshot.Nameless:
		text = "a graph without a name"
		if h.Kind != "graph" {
			text = "unknown: no Python variable leads to these blocks; native code may hold them"
		}
	case h != nil:
		text = holderKind(h) + " " + glue("`"+brief(h.Path)+"`")
		if h.Items > 0 {
			text += glue(fmt.Sprintf(" (%s%s%s)", count(int64(h.Items), h.Noun()), ofBound(h), countedAt(h)))
		}
	}
	if classes&snapshot.Lost != 0 {
		return join(text, "leaked reference counts: the handles were collected without releasing their blocks")
	}
	owners := classes.Names()
	switch {
	case classes == snapshot.OwnedByUser && text == "":
		return "your code"
	case classes == snapshot.OwnedByUser:
		return join(text, "in your code")
	case len(owners) > 0:
		return join(text, "references: "+strings.Join(owners, ", "))
	}
	return text
}

// ofBound is " of at most 100" for a holder that has a bound.
func ofBound(h *snapshot.Holder) string {
	if h.Bound == 0 {
		return ""
	}
	return " of at most " + grouped(int64(h.Bound))
}

// countedAt is " at step 75" if a holder's items were counted before the snapshot.
func countedAt(h *snapshot.Holder) string {
	if h.Counted == 0 {
		return ""
	}
	return " at step " + grouped(h.Counted)
}

// join joins the parts that are not empty with semicolons.
func join(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "; ")
}

// elseGrew lists the findings that were not shown in full.
func (p *page) elseGrew(title string, findings []*diff.Finding, o TextOptions) {
	if len(findings) == 0 {
		return
	}
	p.line(p.paint.bold(title))
	var rows [][]string
	shown := o.top(len(findings))
	for !o.All && shown > 1 && ofNothing(findings[shown-1]) {
		shown--
	}
	several := false
	wheres := make([]where, shown)
	for i, f := range findings[:shown] {
		several = several || deviceName(f.Rows[0].Device) != deviceName(findings[0].Rows[0].Device)
		wheres[i] = whereFound(f)
	}
	for i, f := range findings[:shown] {
		if several {
			wheres[i].device = deviceName(f.Rows[0].Device)
		}
	}
	texts := placesApart(wheres)
	for i, f := range findings[:shown] {
		g := f.Growth()
		if name := causeName(f); name != "" {
			texts[i] += ": " + name
		}
		rows = append(rows, []string{grownBlocks(g.Blocks, f.Uncounted), signed(g.Bytes), string(f.Verdict), texts[i]})
	}
	if rest := findings[shown:]; len(rest) > 0 {
		g := growthOf(rest)
		rows = append(rows, []string{grownBlocks(g.Blocks, findings[0].Uncounted), signed(g.Bytes), "", "… " + count(int64(len(rest)), "more call site")})
	}
	p.table([]column{{"blocks", true}, {"bytes", true}, {"verdict", false}, {"where", false}}, rows)
	p.line("")
	if !o.All {
		return
	}
	p.line(p.paint.bold("Reasons"))
	for i, f := range findings[:shown] {
		p.prose("  ", "    ", texts[i]+": "+join(string(f.Verdict), reasons(f)))
	}
	p.line("")
}

// ofNothing reports whether a finding is harmless and takes no memory, such as a program that JAX compiled once.
func ofNothing(f *diff.Finding) bool {
	return f.Growth().Bytes == 0 && (f.Verdict == diff.Bounded || f.Verdict == diff.Clean)
}

// totals counts every row once, so that the lines sum to the growth.
func (p *page) totals(r *diff.Result, s *story) {
	first, last := names(r)
	p.line(p.paint.bold("Live memory" + ofWhom(r) + ", " + first + " to " + last))
	var rows [][]string
	for _, g := range s.accounts {
		rows = append(rows, []string{grownBlocks(g.growth.Blocks, r.Uncounted()), signed(g.growth.Bytes), count(int64(g.sites), "call site") + ": " + g.name})
	}
	text := "in all"
	if e := exact(s.total.Bytes); e != "" {
		text += " (" + e + ")"
	}
	rows = append(rows, []string{grownBlocks(s.total.Blocks, r.Uncounted()), signed(s.total.Bytes), text})
	p.table([]column{{"blocks", true}, {"bytes", true}, {"", false}}, rows)
}
