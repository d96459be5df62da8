package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// Snapshots of different processes show neither growth nor that there is none.
func TestHeadlineOfDifferentProcessesIsNoVerdict(t *testing.T) {
	a := &snapshot.Snapshot{Producer: "PyTorch", Stacks: snapshot.NewStacks(), Rank: snapshot.NoRank}
	b := &snapshot.Snapshot{Producer: "JAX", Stacks: snapshot.NewStacks(), Rank: snapshot.NoRank}
	r, err := diff.Analyze(&snapshot.Run{Snapshots: []*snapshot.Snapshot{a, b}}, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Headline(r), "no verdict on 0 call sites of different processes; live memory unchanged"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What a snapshot of another process holds more has neither a rate nor a cause, wherever it
// is known.
func TestNoRatesBetweenDifferentProcesses(t *testing.T) {
	run := pyramid()
	run.Snapshots[len(run.Snapshots)-1].Producer = "another"
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if r.Comparable || len(r.Findings) == 0 {
		t.Fatalf("comparable %t, %d findings", r.Comparable, len(r.Findings))
	}
	for _, c := range []struct {
		name  string
		write func(*bytes.Buffer) error
	}{
		{"text", func(b *bytes.Buffer) error { return Text(b, r, TextOptions{All: true}) }},
		{"Markdown", func(b *bytes.Buffer) error { return Markdown(b, r, TextOptions{All: true}) }},
		{"page", func(b *bytes.Buffer) error { return Page(b, r, About{}) }},
		{"plot", func(b *bytes.Buffer) error { return Plot(b, SVG, r, PlotOptions{}) }},
		{"sheet", func(b *bytes.Buffer) error { return Sheet(b, SVG, r, PlotOptions{}) }},
	} {
		var b bytes.Buffer
		if err := c.write(&b); err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"/step", "f it leaks", "Possible leak", "else grew"} {
			if strings.Contains(b.String(), word) {
				t.Errorf("%s says %q of different processes", c.name, word)
			}
		}
	}
	var b bytes.Buffer
	if err := JSON(&b, r); err != nil {
		t.Fatal(err)
	}
	var out struct{ Findings []struct{ Rate, Cause any } }
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	for _, f := range out.Findings {
		if f.Rate != nil || f.Cause != nil {
			t.Errorf("JSON tells a rate or a cause: %+v", f)
		}
	}
}
