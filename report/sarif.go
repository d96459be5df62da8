package report

import (
	"io"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
)

// The parts of SARIF 2.1.0 (OASIS) that a gate has something to say in.
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
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Kind         string             `json:"kind"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations,omitempty"`
		Stacks       []sarifStack       `json:"stacks,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Baseline     string             `json:"baselineState,omitempty"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifLocation struct {
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

// SARIF writes the decision as a log of SARIF 2.1.0: a result for each leak, at the
// line that allocates, with its stack, the fingerprint of the baseline, and the fix
// of its cause as the rule's help. What the baseline knows is suppressed, and what
// cannot be told yet is open.
func (g *Gate) SARIF(w io.Writer) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "memdiag", Version: g.Version, InformationURI: "https://github.com/memdiag/memdiag", Rules: []sarifRule{}}}, Results: []sarifResult{}}
	states := map[baseline.State]string{baseline.New: "new", baseline.Known: "unchanged", baseline.Library: "unchanged", baseline.Regressed: "updated"}
	for i := range g.Outcome.Leaks {
		l := &g.Outcome.Leaks[i]
		r := g.sarifResult(&run.Tool.Driver, l.Finding, l.Fingerprint)
		r.Kind, r.Level, r.Message.Text, r.Baseline = "fail", "error", g.title(l)+". "+g.about(l), states[l.State]
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
		r.Message.Text = bytesRate(f.Rate) + " at " + g.told(Place(f)) + "; a longer run must tell whether it leaks."
		if f.Rate.Unit == "" {
			r.Message.Text = "more at " + g.told(Place(f)) + ", in a snapshot that cannot be compared with the one before."
		}
		run.Results = append(run.Results, r)
	}
	return writeJSON(w, sarifLog{"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// sarifResult is a finding without its level and message; its rule is added to the
// driver's where it is new.
func (g *Gate) sarifResult(d *sarifDriver, f *diff.Finding, fingerprint string) sarifResult {
	id := ruleOf(f)
	at := slices.IndexFunc(d.Rules, func(r sarifRule) bool { return r.ID == id })
	if at < 0 {
		at = len(d.Rules)
		d.Rules = append(d.Rules, ruleFor(f.Cause))
	}
	r := sarifResult{RuleID: id, RuleIndex: at, Fingerprints: map[string]string{"memdiag/v1": fingerprint}}
	frames := f.Rows[0].Frames
	if file, line := g.site(f); file != "" {
		r.Locations = []sarifLocation{sarifAt(file, line, frames[f.Headline])}
	}
	if len(frames) > 0 {
		stack := sarifStack{Message: sarifText{"where it was allocated"}}
		for _, frame := range frames {
			file := ""
			if location(frame) != "" {
				file = g.relative(frame.File)
			}
			stack.Frames = append(stack.Frames, sarifFrame{sarifAt(file, frame.Line, frame)})
		}
		r.Stacks = []sarifStack{stack}
	}
	return r
}

func sarifAt(file string, line int, f snapshot.Frame) sarifLocation {
	var l sarifLocation
	if file == "" || f.Function != "" {
		l.Logical = []sarifLogical{{function(f)}}
	}
	if file != "" {
		l.Physical = &sarifPhysical{Artifact: sarifArtifact{uri(file)}}
		if line > 0 {
			l.Physical.Region = &sarifRegion{line}
		}
	}
	return l
}

// ruleOf is the id of a finding's cause, or "leak" where none fits.
func ruleOf(f *diff.Finding) string {
	if f.Cause == nil {
		return "leak"
	}
	return f.Cause.ID
}

func ruleFor(c *cause.Cause) sarifRule {
	if c == nil {
		text := sarifText{"Memory that grows step by step and is never freed"}
		return sarifRule{ID: "leak", Short: text, Full: text}
	}
	return sarifRule{ID: c.ID, Short: sarifText{upperFirst(c.Name)}, Full: sarifText{c.What}, Help: &sarifText{c.Fix + ". More: memdiag explain " + c.ID}}
}
