package report

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// onScreen is a screen of a result as a user who has chosen nothing sees it.
func onScreen(r *diff.Result, run *snapshot.Run) *Screen {
	s := &Screen{Run: run, Result: r, State: func(*diff.Finding) string { return "" }, Width: 100, Height: 24, Now: r.Last.Mark.Time.Add(3 * time.Second)}
	s.Sites = ScreenSites(r, ByRate, s.State)
	return s
}

func TestScreen(t *testing.T) {
	for _, c := range []struct {
		name, golden string
		change       func(*Screen)
	}{
		{"a list and what was said", "screen.golden", func(s *Screen) {
			s.Events = []string{"03:05:00 step 50 leak: +512 KiB/step"}
			s.State = func(f *diff.Finding) string {
				return map[diff.Verdict]string{diff.Leak: string(LiveSuspected)}[f.Verdict]
			}
		}},
		{"a narrow one in colour", "screen-narrow.golden", func(s *Screen) { s.Width, s.Height, s.Color, s.Cursor = 64, 14, true, 1 }},
		{"one site, and what a key did", "screen-site.golden", func(s *Screen) { s.Opened, s.Said = true, "wrote my-run.html" }},
		{"a few lines", "screen-small.golden", func(s *Screen) { s.Width, s.Height = 40, 6 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := pyramid()
			run.Path, run.Info.Command, run.Ranks = "my-run", []string{"python", "train.py"}, nil
			s := onScreen(pyramidResult(t), run)
			c.change(s)
			golden(t, c.golden, []byte(strings.Join(s.Lines(), "\n")+"\n"))
		})
	}
}

// TestAScreenIsNoWiderThanTheTerminal, nor higher, and nothing that a file says drives it.
func TestAScreenIsNoWiderThanTheTerminal(t *testing.T) {
	const evil = "\x1b[2J\x1b]0;owned\x07\u202e\xff\n"
	r := attacked(t)
	r.Series = pyramidResult(t).Series
	run := &snapshot.Run{Path: evil, Snapshots: []*snapshot.Snapshot{r.First, r.Last}, Tree: &snapshot.Tree{Processes: []snapshot.TreeProcess{
		{Role: evil, Points: []snapshot.ProcessPoint{{Time: time.Unix(1, 0)}}},
	}}}
	run.Info.Command = []string{evil}
	ours := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	rapid.Check(t, func(t *rapid.T) {
		s := onScreen(r, run)
		s.Width, s.Height = rapid.IntRange(1, 200).Draw(t, "width"), rapid.IntRange(1, 60).Draw(t, "height")
		s.Opened, s.Color = rapid.Bool().Draw(t, "opened"), rapid.Bool().Draw(t, "color")
		s.Said, s.Events = evil, slices.Repeat([]string{evil}, rapid.IntRange(0, 20).Draw(t, "events"))
		s.Scroll(rapid.IntRange(-5, 50).Draw(t, "scroll"))
		lines := s.Lines()
		if len(lines) > s.Height {
			t.Fatalf("%d lines of %d", len(lines), s.Height)
		}
		for _, line := range lines {
			if visible(line) > s.Width {
				t.Fatalf("%d columns of %d: %q", visible(line), s.Width, line)
			}
			if plain := ours.ReplaceAllString(line, ""); strings.IndexFunc(plain, unprintable) >= 0 || !s.Color && plain != line {
				t.Fatalf("%q", line)
			}
		}
	})
}

func TestSitesAreInOrder(t *testing.T) {
	r := pyramidResult(t)
	leak := slices.IndexFunc(r.Findings, func(f diff.Finding) bool { return f.Verdict == diff.Leak })
	none := func(*diff.Finding) string { return "" }
	for _, by := range []ScreenOrder{ByRate, ByLive, ByGrowth} {
		if got := ScreenSites(r, by, none); len(got) != len(r.Findings) || got[0] != &r.Findings[leak] {
			t.Errorf("by %v the first of %d is %v", by, len(got), got[0].Verdict)
		}
	}
	r.Findings[leak].Verdict = diff.Bounded // as the others: the size decides
	for by, size := range map[ScreenOrder]func(*diff.Finding) float64{
		ByRate:   func(f *diff.Finding) float64 { return f.Rate.Bytes.Value },
		ByLive:   func(f *diff.Finding) float64 { return float64(f.After().Bytes) },
		ByGrowth: func(f *diff.Finding) float64 { return float64(f.Growth().Bytes) },
	} {
		got := ScreenSites(r, by, none)
		if !slices.IsSortedFunc(got, func(a, b *diff.Finding) int { return int(size(b) - size(a)) }) {
			t.Errorf("by %v they are not in order", by)
		}
	}
	suspected := func(f *diff.Finding) string {
		if f == &r.Findings[len(r.Findings)-1] {
			return string(LiveSuspected)
		}
		return ""
	}
	if got := ScreenSites(r, ByRate, suspected); got[0] != &r.Findings[len(r.Findings)-1] {
		t.Error("a suspect is not the first")
	}
}
