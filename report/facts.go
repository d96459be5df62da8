package report

import (
	"fmt"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// fate says what became of a finding's older blocks.
func fate(f *diff.Finding) string {
	if d := f.Died().Blocks; d > 0 {
		return grouped(d) + " older freed"
	}
	return "none freed"
}

// causeFacts are a finding's cause with its reason, what else it may be, and the fix.
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
		text += " Or else " + f.Others[0].Cause.ID
		if len(f.Others) > 1 {
			text += " or " + f.Others[1].Cause.ID
		}
		text += "."
	}
	return []fact{{"Cause", text}, {"Fix", c.Fix + "."}, {"More", "memdiag explain " + c.ID}}
}

// findingFacts are what is known of a finding beyond its verdict, stack and size.
func findingFacts(r *diff.Result, f *diff.Finding) []fact {
	var out []fact
	add := func(label, text string) {
		if text != "" {
			out = append(out, fact{label, text})
		}
	}
	add("Pace", paceText(f))
	add("Rate", (*page)(nil).rateLine(f.Rate))
	add("Held by", held(f))
	out = append(out, causeFacts(f)...)
	add("Decided in", moreText(f))
	add("Runs out", runsOutText(r, f))
	if f.Before().Blocks > 0 {
		first, _ := names(r)
		add("Live there now", fmt.Sprintf("%s in %s; %s in %s at %s", glue(f.After().Bytes.String()), glue(count(f.After().Blocks, "block")),
			glue(f.Before().Bytes.String()), glue(count(f.Before().Blocks, "block")), first))
	}
	where := hashText(f.Rows[0].Hash) + " on " + deviceName(f.Rows[0].Device)
	if r.Last.Rank != snapshot.NoRank {
		where += fmt.Sprintf(", rank %d", r.Last.Rank)
	}
	add("Stack hash", where)
	return out
}
