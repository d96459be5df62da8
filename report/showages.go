package report

import (
	"fmt"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// How many sites the first verdict shows in full.
const (
	shownFirst   = 5 // leaks
	shownWindows = 2 // possible leaks
)

// firstVerdict writes what the births of live blocks show.
func (p *page) firstVerdict(s *snapshot.Snapshot, a *diff.Ages) {
	p.line("")
	p.line(p.paint.bold("First verdict, by the age of live blocks"))
	if a.Why != "" {
		p.prose("  ", "    ", "none: "+a.Why)
		return
	}
	several := len(s.Devices) > 1
	leaks, windows := 0, 0
	for i := range a.Findings {
		f := &a.Findings[i]
		if f.Verdict == diff.Leak {
			if leaks++; leaks <= shownFirst {
				p.suspect(p.paint.red(fmt.Sprintf("leak, %s", f.Evidence)), f, several)
			}
			continue
		}
		if windows++; windows <= shownWindows {
			p.suspect(p.paint.yellow("may be a leak"), f, several)
		}
	}
	if leaks+windows == 0 {
		p.prose("  ", "    ", noSuspect(s, a))
	}
	if more := max(0, leaks-shownFirst) + max(0, windows-shownWindows); more > 0 {
		p.line("  … " + grouped(int64(more)) + " more; --format json has all")
	}
	p.otherPatterns(s, a)
}

// nothing is the text if no site looks like a leak: one snapshot cannot prove that there is none.
const nothing = "the ages of its blocks show no leak; one snapshot cannot show growth: compare several snapshots of the run with memdiag diff"

// oneOnly follows the reason why a snapshot is undecided.
const oneOnly = "One snapshot cannot show whether they grow: compare several snapshots of the run with memdiag diff"

// noSuspect is the text for a snapshot in which nothing looks like a leak. It says so if the births of most memory are unclear.
func noSuspect(s *snapshot.Snapshot, a *diff.Ages) string {
	var told, untold, older snapshot.Bytes
	for i := range a.Sites {
		switch of := &a.Sites[i]; of.Pattern {
		case diff.Scattered:
			untold += of.Site.Bytes
		case diff.Unborn:
			older += of.Site.Bytes
		default:
			told += of.Site.Bytes
		}
	}
	bare := withoutStack(s).Bytes
	switch {
	case bare > told+untold+older:
		return fmt.Sprintf("undecided: most bytes (%s) have no stack, and are not judged; compare two snapshots of the run", glue(bare.String()))
	case untold > told+older:
		return "undecided: most bytes are at call sites that allocated only a few times, or irregularly. " + oneOnly
	case bare+untold+older > told:
		stackless := ""
		if bare > 0 {
			stackless = "without a stack, "
		}
		return "undecided: most bytes are " + stackless + "older than the recording, or at call sites that allocated only a few times, or irregularly. " + oneOnly
	}
	return nothing
}

// suspect writes a leak or possible leak, with its place, what it holds and why it stands out.
func (p *page) suspect(verdict string, f *diff.Finding, several bool) {
	at := whereFound(f).text()
	if several {
		at = deviceName(f.Rows[0].Device) + " " + at
	}
	p.prose("  ", "    ", verdict+": "+at)
	held := heldText(f)
	if f.Rate.Unit != "" {
		held += "; " + ratesText(f)
	}
	p.prose("    ", "    ", held)
	for _, fact := range firstFacts(f) {
		p.prose("    ", "      ", strings.ToLower(fact.Label)+": "+fact.Text)
	}
}

// heldText is "12.0 MiB in 100 blocks of 3 stacks".
func heldText(f *diff.Finding) string {
	t := f.After()
	text := glue(t.Bytes.String()) + " in " + glue(count(t.Blocks, "block"))
	if n := int64(len(f.Rows)); n > 1 {
		text += " of " + glue(count(n, "stack"))
	}
	return text
}

// firstFacts are the facts that one snapshot has about a finding, beyond its place and size.
func firstFacts(f *diff.Finding) []fact {
	var out []fact
	if by := held(f); by != "" {
		out = append(out, fact{"Held by", by})
	}
	out = append(out, causeFacts(f)...)
	return append(out, fact{"Why", reasons(f)})
}

// otherPatterns sums up the other sites.
func (p *page) otherPatterns(s *snapshot.Snapshot, a *diff.Ages) {
	var parts []string
	for _, c := range []struct {
		name string
		is   func(*diff.SiteAges) bool
	}{
		{"allocated at the start and retained", func(s *diff.SiteAges) bool { return s.Pattern == diff.AtStart }},
		{"just now", func(s *diff.SiteAges) bool { return s.Pattern == diff.JustNow }},
		{"all along, but negligible", func(s *diff.SiteAges) bool { return s.Pattern == diff.Throughout && s.Verdict == diff.Bounded }},
		{"only a few times or irregularly, undecided", func(s *diff.SiteAges) bool { return s.Pattern == diff.Scattered }},
		{"older than the recording", func(s *diff.SiteAges) bool { return s.Pattern == diff.Unborn }},
	} {
		sites, bytes := int64(0), snapshot.Bytes(0)
		for i := range a.Sites {
			if c.is(&a.Sites[i]) {
				sites++
				bytes += a.Sites[i].Site.Bytes
			}
		}
		if sites > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s, %s", c.name, glue(count(sites, "call site")), glue(bytes.String())))
		}
	}
	if bare := withoutStack(s); bare.Blocks > 0 {
		parts = append(parts, fmt.Sprintf("not judged, without a stack: %s, %s", glue(count(bare.Blocks, "block")), glue(bare.Bytes.String())))
	}
	if len(parts) > 0 {
		p.prose("  ", "    ", strings.Join(parts, "; "))
	}
}

// withoutStack sums the live blocks whose stack is unknown.
func withoutStack(s *snapshot.Snapshot) diff.Tally {
	var t diff.Tally
	for i, state := range s.Blocks.State {
		if state == snapshot.Live && s.Blocks.Stack[i] == snapshot.NoStack {
			t = plus(t, diff.Tally{Blocks: s.Blocks.CountOf(i), Bytes: s.Blocks.Size[i], Requested: s.Blocks.Requested[i]})
		}
	}
	return t
}

type firstVerdictJSON struct {
	Unit string `json:"unit,omitempty"` // "step", "time" in Unix microseconds, or "event" of the allocator's
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Why  string `json:"none_because,omitempty"`
	// Findings join the leaks and possible leaks that belong together.
	Findings []firstFindingJSON `json:"findings"`
	Sites    []siteAgesJSON     `json:"sites"`
}

type firstFindingJSON struct {
	Verdict  string     `json:"verdict"`
	Evidence string     `json:"evidence"`
	Device   string     `json:"device"`
	Where    string     `json:"where"`
	Hashes   []string   `json:"stack_hashes"`
	Live     tallyJSON  `json:"live"`
	Cause    *causeJSON `json:"cause,omitempty"`
}

type siteAgesJSON struct {
	Device         string      `json:"device"`
	Hash           string      `json:"stack_hash"`
	Where          string      `json:"where"`
	Pattern        string      `json:"pattern"`
	Verdict        string      `json:"verdict"`
	Evidence       string      `json:"evidence"`
	Reasons        []string    `json:"reasons"`
	DistinctBirths int         `json:"distinct_births"`
	FirstBirth     *int64      `json:"first_birth,omitempty"`
	LongestGap     float64     `json:"longest_gap"` // share of the whole
	UniformP       float64     `json:"uniform_p"`
	UnknownBlocks  int64       `json:"unknown_blocks"`
	BlocksPerStep  *float64    `json:"blocks_per_step,omitempty"`
	BytesPerStep   *float64    `json:"bytes_per_step,omitempty"`
	Holder         *holderJSON `json:"holder,omitempty"`
}

func firstVerdictOf(s *snapshot.Snapshot, a *diff.Ages) firstVerdictJSON {
	out := firstVerdictJSON{Unit: a.Unit, From: a.From, To: a.To, Why: a.Why, Findings: []firstFindingJSON{}, Sites: []siteAgesJSON{}}
	for i := range a.Findings {
		f := &a.Findings[i]
		found := firstFindingJSON{
			Verdict: string(f.Verdict), Evidence: string(f.Evidence), Device: deviceName(f.Rows[0].Device),
			Where: place(f.Rows[0], f.Headline), Live: tallyOf(f.After(), false), Cause: causeOf(f),
		}
		for _, row := range f.Rows {
			found.Hashes = append(found.Hashes, hashText(row.Hash))
		}
		out.Findings = append(out.Findings, found)
	}
	named := headsOf(a.Findings)
	for i := range a.Sites {
		site := &a.Sites[i]
		frames := s.Stacks.Frames(site.Site.Stack)
		row := siteAgesJSON{
			Device: deviceName(site.Device), Hash: hashText(site.Site.Hash), Where: placeOf(frames, site.Site.Label, named.of(site.Device, site.Site.Hash, frames)),
			Pattern: string(site.Pattern), Verdict: string(site.Verdict), Evidence: string(site.Evidence), Reasons: site.Reasons,
			DistinctBirths: site.Distinct, LongestGap: site.Gap, UniformP: site.P, UnknownBlocks: site.Unknown,
		}
		if site.Distinct > 0 {
			row.FirstBirth = &site.First
		}
		if site.Rate.Unit != "" {
			row.BlocksPerStep, row.BytesPerStep = &site.Rate.Blocks.Value, &site.Rate.Bytes.Value
		}
		if h := site.Holder; h != nil {
			row.Holder = holderOf(h)
		}
		out.Sites = append(out.Sites, row)
	}
	return out
}
