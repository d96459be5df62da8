package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// The parts of SARIF 2.1.0 (OASIS) that a gate uses.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string     `json:"id"`
		Short sarifText  `json:"shortDescription"`
		Full  sarifText  `json:"fullDescription"`
		Help  *sarifText `json:"help,omitempty"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Kind         string             `json:"kind"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations,omitempty"`
		Related      []sarifLocation    `json:"relatedLocations,omitempty"`
		Stacks       []sarifStack       `json:"stacks,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Baseline     string             `json:"baselineState,omitempty"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
		Properties   sarifProperties    `json:"properties"`
	}
	// sarifProperties are values that have no field in SARIF.
	sarifProperties struct {
		Rate     *rateJSON   `json:"rate,omitempty"`
		HeldBy   string      `json:"held_by,omitempty"`
		Holder   *holderJSON `json:"holder,omitempty"`
		Cause    string      `json:"cause_name,omitempty"`
		CauseWhy string      `json:"cause_why,omitempty"`
		Fix      string      `json:"fix,omitempty"`
		Ranks    []int       `json:"ranks,omitempty"`
	}
	sarifLocation struct {
		ID       *int           `json:"id,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind,omitempty"`
	}
	sarifStack struct {
		Message sarifText    `json:"message"`
		Frames  []sarifFrame `json:"frames"`
	}
	sarifFrame struct {
		Location sarifLocation `json:"location"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification"`
	}
)

// SARIF writes the decision as a log of SARIF 2.1.0: a result for each leak, at the line that allocates, with its stack, the
// fingerprint for baselines, its holder and other lines of the user as related locations, and the fix of its cause as the rule's help.
// Leaks in the baseline are suppressed, and possible leaks are open.
func (g *Gate) SARIF(w io.Writer) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "memdiag", Version: g.Version, InformationURI: "https://github.com/memdiag/memdiag", Rules: []sarifRule{}}}, Results: []sarifResult{}}
	states := map[baseline.State]string{baseline.New: "new", baseline.Known: "unchanged", baseline.Library: "unchanged", baseline.Regressed: "updated"}
	for i := range g.Outcome.Leaks {
		l := &g.Outcome.Leaks[i]
		r := g.sarifResult(&run.Tool.Driver, l.Finding, l.Fingerprint)
		r.Kind, r.Level, r.Message.Text, r.Baseline = "fail", "error", g.place(l)+". "+sentences(g.facts(l)), states[l.State]
		r.Properties.Ranks = l.Ranks
		switch {
		case l.Passes():
			r.Level = "note"
			r.Suppressions = []sarifSuppression{{"external", "accepted", Printable(l.Why + owned(l.Entry))}}
		case g.Verdict != diff.Leak:
			r.Level = "note"
		}
		run.Results = append(run.Results, r)
	}
	for _, f := range g.Outcome.Undecided {
		r := g.sarifResult(&run.Tool.Driver, f, baseline.Fingerprint(f.Rows[0]))
		r.Kind, r.Level = "open", "none"
		r.Message.Text = g.open(f) + ". " + sentences(g.findingFacts(f))
		run.Results = append(run.Results, r)
	}
	for _, r := range g.Ranks {
		for _, e := range r.Result.Unaccounted() {
			run.Results = append(run.Results, g.sarifUnexplained(&run.Tool.Driver, r.Rank, e))
		}
	}
	for i := range g.Budgets {
		if b := &g.Budgets[i]; b.State() != "kept" {
			run.Results = append(run.Results, b.sarif(&run.Tool.Driver))
		}
	}
	return writeJSON(w, sarifLog{"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// sarifResult is a finding without its level and message. A new rule is added to the driver's.
func (g *Gate) sarifResult(d *sarifDriver, f *diff.Finding, fingerprint string) sarifResult {
	id, at := d.rule(f.Cause)
	r := sarifResult{RuleID: id, RuleIndex: at, Fingerprints: map[string]string{"memdiag/v1": fingerprint}}
	r.Properties = sarifProperties{Rate: rateOfFinding(f), HeldBy: g.told(unglued(held(f)))}
	if f.Holder != nil {
		r.Properties.Holder = holderOf(f.Holder)
	}
	if c := f.Cause; c != nil {
		r.Properties.Cause, r.Properties.CauseWhy, r.Properties.Fix = c.Name, f.CauseWhy, c.Fix
	}
	frames := f.Rows[0].Frames
	if file, line := g.site(f); file != "" {
		r.Locations = []sarifLocation{sarifAt(file, line, frames[f.Headline])}
	}
	r.Related = g.sarifRelated(f)
	if len(frames) > 0 {
		stack := sarifStack{Message: sarifText{Text: "where it was allocated"}}
		for _, frame := range frames {
			stack.Frames = append(stack.Frames, sarifFrame{sarifAt(g.fileOf(frame), frame.Line, frame)})
		}
		r.Stacks = []sarifStack{stack}
	}
	return r
}

// sarifUnexplained is the growth of a process that no recorded stack explains.
func (g *Gate) sarifUnexplained(d *sarifDriver, rank int, e *diff.Reserve) sarifResult {
	id, at := d.rule(e.Cause)
	j, name := reserveOf(e), deviceName(e.Device)
	if e.Processes != nil {
		name = e.Processes.Role
	}
	r := sarifResult{
		RuleID: id, RuleIndex: at, Kind: "open", Level: "none", Message: sarifText{Text: g.told(reserveText(e))},
		Fingerprints: map[string]string{"memdiag/v1": "process:" + name}, Properties: sarifProperties{Holder: j.Holder},
	}
	if at := e.Line(); at != nil && g.fileOf(*at) != "" {
		r.Locations = []sarifLocation{sarifAt(g.fileOf(*at), max(0, at.Line), *at)}
	}
	if j.Rate != nil {
		r.Properties.Rate = &rateJSON{Unit: j.Rate.Unit, Bytes: j.Rate.Bytes}
	}
	if rank != snapshot.NoRank {
		r.Properties.Ranks = []int{rank}
	}
	return r
}

// maxRelated bounds a result's related locations of each kind.
const maxRelated = 5

// sarifRelated are the holder of a finding's blocks, the user's calls that led to its line, the nearest first, and the lines of its
// other stacks.
func (g *Gate) sarifRelated(f *diff.Finding) []sarifLocation {
	var out []sarifLocation
	add := func(l sarifLocation, message string) {
		id := len(out) + 1
		l.ID, l.Message = &id, &sarifText{Text: message}
		out = append(out, l)
	}
	if h := f.Holder; h != nil {
		add(sarifLocation{Logical: []sarifLogical{{brief(h.Path), "variable"}}}, "held by "+unglued(heldBy(h, 0)))
	}
	own := frame.Own(f.Rows[0].Frames)
	for _, call := range f.Rows[0].Frames[f.Headline+1:] {
		if file := g.fileOf(call); f.Headline >= 0 && file != "" && own(call) && len(out) <= maxRelated {
			add(sarifAt(file, call.Line, call), "called from here")
		}
	}
	for _, row := range f.Rows[1:min(len(f.Rows), 1+maxRelated)] {
		at := frame.Headline(row.Frames)
		if at < 0 || g.fileOf(row.Frames[at]) == "" {
			continue
		}
		add(sarifAt(g.fileOf(row.Frames[at]), row.Frames[at].Line, row.Frames[at]), signed(row.Growth().Bytes)+" of it is allocated here")
	}
	return out
}

// fileOf is a frame's file relative to the root; "" if it has none.
func (g *Gate) fileOf(f snapshot.Frame) string {
	if location(f) == "" {
		return ""
	}
	return g.relative(f.File)
}

func sarifAt(file string, line int, f snapshot.Frame) sarifLocation {
	var l sarifLocation
	if file == "" || f.Function != "" {
		l.Logical = []sarifLogical{{Name: function(f)}}
	}
	if file != "" {
		l.Physical = &sarifPhysical{Artifact: sarifArtifact{uri(file)}}
		if line > 0 {
			l.Physical.Region = &sarifRegion{line}
		}
	}
	return l
}

// ruleOf is the id of a finding's cause, or "leak" if none is known.
func ruleOf(c *cause.Cause) string {
	if c == nil {
		return "leak"
	}
	return c.ID
}

// rule is the id and the index of a cause's rule, which is added if it is new.
func (d *sarifDriver) rule(c *cause.Cause) (id string, at int) { return d.add(ruleFor(c)) }

// add is the id and the index of a rule, which is added if it is new.
func (d *sarifDriver) add(rule sarifRule) (id string, at int) {
	at = slices.IndexFunc(d.Rules, func(r sarifRule) bool { return r.ID == rule.ID })
	if at < 0 {
		at = len(d.Rules)
		d.Rules = append(d.Rules, rule)
	}
	return rule.ID, at
}

func ruleFor(c *cause.Cause) sarifRule {
	if c == nil {
		text := sarifText{Text: "Memory that grows step by step and is never freed"}
		return sarifRule{ID: "leak", Short: text, Full: text, Help: &sarifText{Text: "No cause that memdiag knows fits. Look at what holds the memory. More: memdiag explain"}}
	}
	code := language(c.Before + c.After)
	help := &sarifText{
		Text:     upperFirst(c.Fix) + ". Before:\n" + c.Before + "\nAfter:\n" + c.After + "\nMore: memdiag explain " + c.ID,
		Markdown: fmt.Sprintf("%s.\n\n```%s\n%s\n```\n\nbecomes\n\n```%s\n%s\n```\n\nMore: `memdiag explain %s`", upperFirst(c.Fix), code, c.Before, code, c.After, c.ID),
	}
	return sarifRule{ID: c.ID, Short: sarifText{Text: upperFirst(c.Name)}, Full: sarifText{Text: c.What}, Help: help}
}
