package report

import (
	"fmt"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// births says how many blocks of a finding were born since the first snapshot, and what became of the older ones.
func births(f *diff.Finding, first string) string {
	if f.Uncounted {
		return "blocks are not counted"
	}
	if f.Born().Blocks == 0 && f.Died().Blocks == 0 {
		return "in as many blocks as at " + first
	}
	return fmt.Sprintf("%s born after %s %s", estimate(f, count(f.Born().Blocks, noun(f))), first, fate(f))
}

// estimate adds "about" to an estimated number.
func estimate(f *diff.Finding, text string) string {
	if f.Estimated() {
		return "about " + text
	}
	return text
}

// exactly is exact, or "" for an estimate.
func exactly(f *diff.Finding, b snapshot.Bytes) string {
	if f.Estimated() {
		return ""
	}
	return exact(b)
}

// fate says what became of a finding's new blocks and of older ones. Snapshots do not show blocks that were born and freed between
// them. For a block that is replaced again and again, they miss the older ones that neither holds.
func fate(f *diff.Finding) string {
	if d := f.Died().Blocks; d > 0 {
		return "and still alive, " + grouped(d) + " older freed"
	}
	if f.Shape == diff.BytesOnly || f.Shape == diff.Doubling {
		return "and still alive; the smaller block before it was freed"
	}
	return "and still alive"
}

// causeFacts are a finding's cause with its reason, other possible causes, and the fix.
func causeFacts(f *diff.Finding) []fact {
	c := f.Cause
	if c == nil {
		return nil
	}
	text := c.Name
	if f.CauseWhy != "" {
		text += " (" + brief(f.CauseWhy) + ")"
	}
	text += "."
	if len(f.Others) > 0 {
		text += " It could also be: " + f.Others[0].Cause.Name
		if len(f.Others) > 1 {
			text += "; or " + f.Others[1].Cause.Name
		}
		text += "."
	}
	if f.Verdict == diff.Inconclusive { // too early for a fix
		return []fact{{"If it leaks", text + " More: memdiag explain " + c.ID}}
	}
	return []fact{{"Cause", text}, {"Fix", c.Fix + "."}, {"More", "memdiag explain " + c.ID}}
}

// causeName is a finding's cause in few words; "" if unknown.
func causeName(f *diff.Finding) string {
	switch {
	case f.Cause == nil:
		return ""
	case f.Verdict == diff.Inconclusive:
		return "if it leaks, " + f.Cause.Name
	}
	return f.Cause.Name
}

// The labels of facts that the terminal shows with --all only.
const (
	testLabel = "Test"
	hashLabel = "Stack hash"
)

// findingFacts are the facts about a finding beyond its verdict, stack and size, in the order of all reports.
func findingFacts(r *diff.Result, f *diff.Finding) []fact {
	var out []fact
	add := func(label, text string) {
		if text != "" {
			out = append(out, fact{label, text})
		}
	}
	pace := paceText(f)
	if more := nodesOf(f)+f.Beside > 0 && !ofProcess(f); more && pace != "" {
		pace += ", not counting what else leaks with them"
	}
	add("Pace", pace)
	rate := rateText(f.Rate, f.Uncounted || ofItems(f))
	switch {
	case f.Sampled && rate != "":
		rate += "; of the sampled allocations, without the sampling error"
	case f.Estimated() && nodesOf(f)+f.Beside == 0:
		rate = join(rate, overallText(f.Growth(), r.Last.Mark.Step-r.First.Mark.Step, f.Rate))
	}
	add("Rate", rate)
	switch {
	case ofItems(f):
		add("Memory", graphText(f))
	case itemsBehind(f):
		add("Objects", graphText(f))
	default:
		add("Autograd's graph", graphText(f))
	}
	add("Also holds", besideText(f))
	add("Held by", held(f))
	out = append(out, causeFacts(f)...)
	add("Why", reasons(f))
	add(testLabel, testText(f))
	add("To decide", moreText(r.Series.Axis.Unit, f.More))
	add("Runs out", runsOutText(r, f))
	where := deviceName(f.Rows[0].Device)
	switch {
	case !ofItems(f):
	case f.Nodes == nil: // what the items take is unknown
		where = deviceName(snapshot.Device{Kind: snapshot.Process})
	default:
		where = deviceName(f.Nodes.Device)
	}
	if r.Last.Rank != snapshot.NoRank {
		where += fmt.Sprintf(", rank %d", r.Last.Rank)
	}
	add("Device", where)
	add(hashLabel, hashText(f.Rows[0].Hash))
	return out
}

// deviceReserves lists a result's reserves except the growth of processes, which is among the findings.
func deviceReserves(r *diff.Result) []*diff.Reserve {
	var out []*diff.Reserve
	for i := range r.Reserves {
		if e := &r.Reserves[i]; e != r.ProcessGrowth() && e.Processes == nil {
			out = append(out, e)
		}
	}
	return out
}

// reserveFacts says who holds the memory that grew by itself, and how to fix it.
func reserveFacts(e *diff.Reserve) []fact {
	var out []fact
	if e.Graph != nil {
		out = append(out, fact{"Held by", heldBy(e.Graph, 0)})
	}
	if e.Cause != nil {
		out = append(out, fact{"Fix", e.Fix() + "."}, fact{"More", "memdiag explain " + e.Cause.ID})
	}
	return out
}

// reserveText is a reserve with its facts in one paragraph.
func reserveText(e *diff.Reserve) string {
	text := brief(e.String()) + "."
	for _, f := range reserveFacts(e) {
		text += " " + f.Label + ": " + strings.TrimSuffix(f.Text, ".") + "."
	}
	return unglued(text)
}

// between says what lies between the compared snapshots: " (1 between; counters of 101 steps)"; "" for nothing.
func between(r *diff.Result) string {
	var parts []string
	if r.Intermediate > 0 {
		parts = append(parts, grouped(int64(r.Intermediate))+" between")
	}
	steps := make(map[int64]bool, len(r.Series.Marks))
	for _, m := range r.Series.Marks {
		steps[m.Step] = true
	}
	if len(r.Series.Marks) > r.Intermediate+2 {
		parts = append(parts, "counters of "+count(int64(len(steps)), "step"))
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// liveText is what a finding's sites hold now and held at first. It is "" if they held nothing at first, since the growth is then the
// same number.
func liveText(r *diff.Result, f *diff.Finding) string {
	before, after := f.Before(), f.After()
	if before.Blocks == 0 {
		return ""
	}
	first, _ := names(r)
	if f.Uncounted {
		return fmt.Sprintf("%s; %s at %s", glue(after.Bytes.String()), glue(before.Bytes.String()), first)
	}
	return fmt.Sprintf("%s in %s; %s in %s at %s", glue(estimate(f, after.Bytes.String())), glue(count(after.Blocks, "block")),
		glue(before.Bytes.String()), glue(count(before.Blocks, "block")), first)
}

func reasons(f *diff.Finding) string { return reasonsText(f, false) }

// testText is the significance test of a finding's trend; "" for none.
func testText(f *diff.Finding) string { return reasonsText(f, true) }

func reasonsText(f *diff.Finding, tests bool) string {
	var list []string
	for _, why := range f.Reasons {
		if strings.HasPrefix(why, judge.Chance) == tests {
			list = append(list, brief(why))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, "; ") + "."
}

// overallText is the growth over the whole run if it is outside the rate's interval. If a recorder saw only some steps, or part of
// them, the rate may be that of the steps that it saw best.
func overallText(g diff.Tally, steps int64, rate diff.Rate) string {
	if rate.Unit != diff.Step || steps <= 0 {
		return ""
	}
	blocks, overall := float64(g.Blocks)/float64(steps), float64(g.Bytes)/float64(steps)
	if 0.9*rate.Bytes.Low <= overall && overall <= 1.1*rate.Bytes.High {
		return ""
	}
	return fmt.Sprintf("over the whole run %s blocks, %s a step", glue(plusSign(blocks)+threeDigits(blocks)), glue(plusSign(overall)+snapshot.FormatBytes(overall)))
}

// rateText is the interval of the rate; "" if the points lie on one line. Blocks that are not counted have no interval.
func rateText(r diff.Rate, uncounted bool) string {
	r = readable(r)
	if uncounted {
		r.Blocks = trend.Slope{}
	}
	blocks, bytes := interval(r.Blocks, finely), interval(r.Bytes, snapshot.FormatBytes)
	switch {
	case blocks == "" && bytes == "":
		return ""
	case doubt(r.Bytes) != "" && doubt(r.Blocks) != "":
		return fmt.Sprintf("may be zero: %s %s (95 %% interval, n = %d)", glue(bytes), each(r.Unit), r.Bytes.N)
	}
	var parts []string
	if blocks != "" {
		parts = append(parts, glue(blocks)+" blocks")
	}
	if bytes != "" {
		parts = append(parts, glue(bytes))
	}
	text := fmt.Sprintf("%s %s (95 %% interval, n = %d)", strings.Join(parts, ", "), each(r.Unit), r.Bytes.N)
	if doubt(r.Blocks)+doubt(r.Bytes) != "" {
		text += "; ~ may be zero"
	}
	return text
}
