package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// pageOfOne is the view of a single snapshot.
func pageOfOne(s *snapshot.Snapshot, about About) *view {
	v := &view{
		One: true, Name: nameOf(about), Version: brief(about.Version),
		Missing: missing(s, "", s.Notes, "how memory grew: that takes two snapshots; a verdict takes five or more, or three if the steps of allocations are recorded"),
	}
	sites := s.Sites()
	var live diff.Tally
	for i := range sites {
		live = plus(live, diff.Tally{Blocks: sites[i].Count, Bytes: sites[i].Bytes})
	}
	held := fmt.Sprintf("%s live%s at %s", live.Bytes, strings.ReplaceAll(inBlocks(live.Blocks, s.Blocks.Uncounted()), noBreak, " "), count(int64(len(sites)), "call site"))
	v.Lead = fmt.Sprintf("One snapshot: %s; %s; recorded by %s.", held, markText(s), producer(s))
	for _, d := range s.Devices {
		if !unused(d.Meters) {
			v.Facts = append(v.Facts, liveFact(s, d))
		}
	}
	ages := diff.Inspect(s)
	leaks, named := v.judgeOne(s, held, ages), headsOf(ages.Findings)
	v.largest(s, sites, live.Bytes, named)
	profile := LiveProfile(s)
	profile.heads = named
	svg, text := embeddedFlame(profile, pageBoxes)
	v.Flame, v.FlameAbout = template.HTML(svg), text //nolint:gosec // Flame escapes every name in it
	v.ChartData = []chartData{}
	v.Devices = deviceViews(nil, s)
	v.Ages, v.Maps = agesViewOf(s, leaks, about.Run), mapViews(s, leaks)
	v.again(s, about)
	v.moment(s)
	return v
}

// moment says which moment is shown. If memory ran out, that becomes the page's title.
func (v *view) moment(s *snapshot.Snapshot) {
	what, of, lines := momentText(s, shapesOf(s))
	if what == "" {
		return
	}
	for _, line := range append([]string{what + of}, lines...) {
		v.Moment = append(v.Moment, strings.ReplaceAll(line, noBreak, " "))
	}
	if s.Moment.Refused != nil {
		v.Title, v.State, v.Moment = v.Moment[0], "leak", v.Moment[1:]
	}
}

// judgeOne sets the title and the findings from the births of live blocks, and returns the sites that leak. If the snapshot cannot be
// judged, the title says what it holds.
func (v *view) judgeOne(s *snapshot.Snapshot, held string, a *diff.Ages) leakSites {
	leaks := make(leakSites)
	number, windows := 0, 0
	for i := range a.Findings {
		f := &a.Findings[i]
		leak := f.Verdict == diff.Leak
		if leak {
			number++
			for _, row := range f.Rows {
				leaks[siteName(row.Device, row.Hash)] = struct{}{}
			}
		} else {
			windows++
		}
		if leak && number <= shownFirst || !leak && windows <= shownWindows {
			v.Findings = append(v.Findings, findingOfOne(f))
		}
	}
	v.State, v.Title = "clean", "one snapshot: the ages of its blocks show no leak"
	switch {
	case a.Why != "":
		v.State, v.Title, v.NoFindings = "inconclusive", held, "None: "+brief(a.Why)+"."
	case number > 0:
		v.State, v.Title = "leak", lookLike(number, "looks like a leak", "look like leaks")+place(a.Findings[0].Rows[0], a.Findings[0].Headline)
	case windows > 0:
		v.State, v.Title = "inconclusive", lookLike(windows, "may be a leak", "may be leaks")+place(a.Findings[0].Rows[0], a.Findings[0].Headline)
	default:
		if about := noSuspect(s, a); about != nothing {
			v.State, v.Title, v.NoFindings = "inconclusive", held, "By the age of its blocks one "+strings.ReplaceAll(about, noBreak, " ")+"."
		} else {
			v.NoFindings = "By the age of its blocks, " + about + "."
		}
	}
	return leaks
}

// lookLike is "1 place looks like a leak: ", "3 places look like leaks; the largest: ".
func lookLike(n int, one, several string) string {
	if n == 1 {
		return "1 place " + one + ": "
	}
	return count(int64(n), "place") + " " + several + "; the largest: "
}

func findingOfOne(f *diff.Finding) findingView {
	row := f.Rows[0]
	v := findingView{
		Verdict: string(f.Verdict), Badge: badge(f), Mark: guiltyMark(f),
		Place: place(row, f.Headline), Held: strings.ReplaceAll(heldText(f), noBreak, " "),
	}
	v.stack(f)
	v.divide(append(firstFacts(f), fact{"Stack hash", hashText(row.Hash) + " on " + deviceName(row.Device)}))
	v.Together, v.TogetherMore = togetherViews(f)
	v.Common = common(f)
	if f.Headline >= 0 {
		v.Function = besidePlace(row.Frames[f.Headline])
	}
	v.Rate, v.BlocksRate = bytesRate(f.Rate), blocksRateOf(f)
	return v
}

// largest lists the sites that hold most.
func (v *view) largest(s *snapshot.Snapshot, sites []snapshot.Site, live snapshot.Bytes, named heads) {
	const listed = 20
	shown := min(len(sites), listed)
	wheres := make([]where, shown)
	for i := range wheres {
		wheres[i] = named.where(s.Devices[sites[i].Device], sites[i].Hash, s.Stacks.Frames(sites[i].Stack), sites[i].Label)
		if len(s.Devices) > 1 {
			wheres[i].device = deviceName(s.Devices[sites[i].Device])
		}
	}
	for i, text := range placesApart(wheres) {
		v.Sites = append(v.Sites, siteView{heldBlocks(sites[i].Count, s.Blocks.Uncounted()), sites[i].Bytes.String(), share(sites[i].Bytes, live), strings.ReplaceAll(text, noBreak, " ")})
	}
	var rest snapshot.Bytes
	for i := shown; i < len(sites); i++ {
		rest += sites[i].Bytes
	}
	if n := len(sites) - shown; n > 0 {
		v.SitesMore = count(int64(n), "more call site") + " hold " + rest.String()
	}
}
