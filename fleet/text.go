package fleet

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// table adds rows in columns; names out of files are made printable.
func table(b *strings.Builder, head string, rows [][]string) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	line := func(text string) { _, _ = t.Write([]byte(text + "\n")) } // a Builder takes all
	line(strings.ReplaceAll(head, "|", "\t"))
	for _, row := range rows {
		for i := range row {
			row[i] = strings.ReplaceAll(report.Printable(row[i]), "\t", " ")
		}
		line(strings.TrimRight(strings.Join(row, "\t"), "\t "))
	}
	_ = t.Flush()
}

// flush writes what was gathered.
func flush(w io.Writer, b *strings.Builder) error {
	_, err := io.WriteString(w, b.String())
	return err
}

func size(n int64) string { return snapshot.Bytes(n).String() }

func bySecond(rate float64) string {
	switch {
	case rate <= 0:
		return "-"
	case rate < 1:
		return fmt.Sprintf("%.2f B/s", rate)
	}
	return snapshot.FormatBytes(rate) + "/s"
}

func dayText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(day)
}

// short is a commit as people write it.
func short(commit string) string {
	if commit == "" {
		return "-"
	}
	return report.Printable(commit[:min(len(commit), 10)])
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// WriteRuns writes runs as a table.
func WriteRuns(w io.Writer, runs []Run) error {
	var b strings.Builder
	var rows [][]string
	for _, r := range runs {
		rows = append(rows, []string{r.ID, dayText(r.When()), short(r.Commit), r.Status, r.Verdict, fmt.Sprint(r.Leaks), fmt.Sprint(r.Ranks), fmt.Sprint(r.Steps), size(r.Growth), r.Name})
	}
	table(&b, "run|day|commit|status|verdict|leaks|ranks|steps|growth|name", rows)
	return flush(w, &b)
}

// WriteNext writes which runs die next.
func WriteNext(w io.Writer, next []Dying) error {
	var b strings.Builder
	if len(next) == 0 {
		b.WriteString("no unfinished run is known to run out of memory\n")
		return flush(w, &b)
	}
	var rows [][]string
	for _, d := range next {
		when, left := "-", "-"
		if d.At > 0 {
			when = time.Unix(d.At, 0).UTC().Format("2006-01-02 15:04")
		}
		if d.Left >= 0 {
			left = time.Duration(d.Left * float64(time.Second)).Round(time.Minute).String()
		}
		rows = append(rows, []string{left, when, rankText(d.Step), rankText(d.Rank), d.Run.ID, d.Run.Name})
	}
	table(&b, "left after its last snapshot|memory is full (UTC, its clock)|step|rank|run|name", rows)
	return flush(w, &b)
}

func rankText(rank int64) string {
	if rank < 0 {
		return "-"
	}
	return fmt.Sprint(rank)
}

// WriteLeaks writes leaks as a table, the first top ones.
func WriteLeaks(w io.Writer, leaks []Leak, runs, top int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s\n", plural(len(leaks), "leak"), plural(runs, "run"))
	if len(leaks) == 0 {
		return flush(w, &b)
	}
	b.WriteString("\n")
	var rows [][]string
	for _, l := range leaks[:min(top, len(leaks))] {
		lost := "-"
		if l.GPUHours > 0 {
			lost = fmt.Sprintf("%.1f h", l.GPUHours)
		}
		rows = append(rows, []string{
			l.Place, l.Cause, fmt.Sprint(l.Runs), fmt.Sprint(l.Ranks), dayText(l.FirstSeen), short(l.FirstCommit), dayText(l.LastSeen),
			bySecond(l.RateMedian), bySecond(l.RateHigh), size(l.Leaked), overTime(l.LeakedHours), lost, l.Fingerprint,
		})
	}
	table(&b, "place|cause|runs|ranks|first seen|commit|last seen|median rate|90 %|leaked|cost|GPU time lost|fingerprint", rows)
	if len(leaks) > top {
		fmt.Fprintf(&b, "and %d more (--top)\n", len(leaks)-top)
	}
	return flush(w, &b)
}

func overTime(byteHours float64) string { return snapshot.FormatBytes(math.Round(byteHours)) + "·h" }

// WriteUnlike writes which ranks of a run are unlike their peers.
func WriteUnlike(w io.Writer, run Run, ranks []Rank, groups []Group) error {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s, %s: %s\n", run.ID, report.Printable(run.Name), plural(len(ranks), "rank"))
	if len(groups) == 0 {
		b.WriteString("no rank grows unlike its peers\n")
		return flush(w, &b)
	}
	for _, line := range sayings(groups) {
		fmt.Fprintln(&b, line)
	}
	b.WriteString("\n")
	shown := slices.Clone(ranks)
	slices.SortStableFunc(shown, func(a, b Rank) int { return int(min(1, max(-1, b.Slope-a.Slope))) })
	var rows [][]string
	for _, r := range shown[:min(len(shown), 10)] {
		rows = append(rows, []string{rankText(r.Rank), r.Host, rankText(r.Stage), rankText(r.Replica), r.Verdict, snapshot.FormatBytes(r.Slope) + "/step", size(r.Live), size(r.Growth)})
	}
	table(&b, "rank|host|stage|replica|verdict|slope|live|growth", rows)
	return flush(w, &b)
}

// sayings are a clause for each group. Several single ranks are one.
func sayings(groups []Group) (out []string) {
	var lone Group
	for _, g := range groups {
		if g.Kind == "rank" {
			lone.Ranks = append(lone.Ranks, g.Ranks...)
			lone.Slope, lone.Peers, lone.P = lone.Slope+g.Slope, g.Peers, max(lone.P, g.P)
		}
	}
	n := len(lone.Ranks)
	lone.Slope /= float64(max(n, 1))
	slices.Sort(lone.Ranks)
	for _, g := range groups {
		say := func(who, verb string) {
			out = append(out, fmt.Sprintf("%s %s by %s/step, %s peers by %s/step (p = %.1g)", who, verb, snapshot.FormatBytes(g.Slope), map[string]string{"grows": "its", "grow": "their"}[verb], snapshot.FormatBytes(g.Peers), g.P))
		}
		switch {
		case g.Kind == "all":
			out = append(out, fmt.Sprintf("all ranks leak alike, by %s/step on average", snapshot.FormatBytes(g.Slope)))
		case g.Kind == "rank" && n > 1:
			if n > 0 {
				g = lone
				say(ranksText(lone.Ranks)+", which share no group,", "grow")
				n = 0
			}
		case g.Kind == "rank" && n == 1:
			say(g.Name, "grows")
		case g.Kind != "rank":
			say(report.Printable(g.Name)+" ("+ranksText(g.Ranks)+")", "grows")
		}
	}
	return out
}

// ranksText is "ranks 0-3, 7", with at most a few ranges.
func ranksText(ranks []int64) string {
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if j > i {
			parts = append(parts, fmt.Sprintf("%d-%d", ranks[i], ranks[j]))
		} else {
			parts = append(parts, fmt.Sprint(ranks[i]))
		}
		i = j + 1
	}
	if len(parts) > 8 {
		return fmt.Sprintf("%d ranks: %s, …", len(ranks), strings.Join(parts[:8], ", "))
	}
	if len(ranks) == 1 {
		return "rank " + parts[0]
	}
	return "ranks " + strings.Join(parts, ", ")
}

// WriteChanges writes how leaks changed between two commits.
func WriteChanges(w io.Writer, changes []Change, before, after string, runsBefore, runsAfter int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s) and %s (%s)\n", short(before), plural(runsBefore, "run"), short(after), plural(runsAfter, "run"))
	if len(changes) == 0 {
		b.WriteString("no leak at either commit\n")
		return flush(w, &b)
	}
	b.WriteString("\n")
	var rows [][]string
	for _, c := range changes {
		saved := size(c.Saved)
		if c.Saved <= 0 {
			saved = "-"
		}
		now := bySecond(c.After)
		if c.Why != "" {
			now = "?"
		}
		rows = append(rows, []string{c.State, c.Place, bySecond(c.Before), now, saved, c.Fingerprint})
	}
	table(&b, "state|place|before|after|saved|fingerprint", rows)
	for _, c := range changes {
		if c.Why != "" {
			fmt.Fprintf(&b, "not judged: %s: %s\n", report.Printable(c.Place), report.Printable(c.Why))
		}
	}
	return flush(w, &b)
}
