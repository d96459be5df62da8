package screen

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/live"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/watch"
)

// growing is a run of so many sites, each of which gains a block of its own size with each snapshot.
func growing(t testing.TB, sites int) *snapshot.Run {
	t.Helper()
	run := &snapshot.Run{Path: "my-run"}
	stacks := snapshot.NewStacks()
	for step := range int64(4) {
		s := &snapshot.Snapshot{
			Mark: snapshot.Mark{Step: step * 40, Epoch: snapshot.NoStep, Time: time.Unix(1000+step, 0)}, Rank: snapshot.NoRank, Stacks: stacks,
			Devices: []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown}},
		}
		b := &s.Blocks
		var at snapshot.Bytes
		for site := range sites {
			id := stacks.InternFrames([]snapshot.Frame{{Function: "step", File: fmt.Sprintf("layer%d.py", site), Line: 3}})
			size := snapshot.Bytes(sites-site) * 512
			for range step + 1 {
				b.Segment, b.Address = append(b.Segment, 0), append(b.Address, uint64(at)+1<<12)
				b.Size, b.Requested = append(b.Size, size), append(b.Requested, size)
				b.State, b.Stack, b.BirthStep = append(b.State, snapshot.Live), append(b.Stack, id), append(b.BirthStep, step*40)
				at += size
			}
		}
		s.Segments = []snapshot.Segment{{Address: 1 << 12, Size: at, NumBlocks: len(b.Size)}}
		run.Snapshots = append(run.Snapshots, s)
	}
	return run
}

// lookAt is a look at runs, one for each rank.
func lookAt(t testing.TB, runs ...*snapshot.Run) looked {
	t.Helper()
	look := &watch.Look{Time: time.Unix(2000, 0)}
	for _, run := range runs {
		r, err := diff.DefaultOptions().Analyze(run)
		if err != nil {
			t.Fatal(err)
		}
		look.Ranks = append(look.Ranks, watch.Rank{Run: run, Result: r})
	}
	return looked{look}
}

// after is a model that has got messages; those that are texts are keys.
func after(t testing.TB, m model, messages ...any) model {
	t.Helper()
	for _, message := range messages {
		if key, is := message.(string); is {
			message = pressed(key)
		}
		next, _ := m.Update(message)
		m = next.(model) //nolint:forcetypeassert // it is no other
	}
	return m
}

func pressed(key string) tea.KeyPressMsg {
	for name, code := range map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "down": tea.KeyDown, "end": tea.KeyEnd} {
		if key == name {
			return tea.KeyPressMsg{Code: code}
		}
	}
	return tea.KeyPressMsg{Code: rune(key[0]), Text: key}
}

// chosen is the line of the list that is chosen.
func chosen(m model) string {
	for line := range strings.Lines(m.View().Content) {
		if strings.HasPrefix(line, "> ") {
			return line
		}
	}
	return ""
}

var size = tea.WindowSizeMsg{Width: 120, Height: 30}

func TestWhatIsChosenStaysSo(t *testing.T) {
	run := growing(t, 20)
	look := lookAt(t, run)
	m := after(t, model{}, size, look, "down", "down")
	if got := chosen(m); !strings.Contains(got, "layer2.py:3") {
		t.Fatalf("%q of\n%s", got, m.View().Content)
	}
	// Another look has another first site: one is suspected now.
	look.Ranks[0].Suspects = []*live.Suspect{{State: live.Suspected, Finding: &look.Ranks[0].Result.Findings[10]}}
	if m = after(t, m, look); !strings.Contains(chosen(m), "layer2.py:3") || m.s.Sites[0] != &look.Ranks[0].Result.Findings[10] {
		t.Errorf("%q of\n%s", chosen(m), m.View().Content)
	}
	if m = after(t, m, "enter"); !strings.Contains(m.View().Content, "-> layer2.py:3 in step") {
		t.Errorf("opened:\n%s", m.View().Content)
	}
	if m = after(t, m, "esc", "end"); !strings.Contains(chosen(m), "layer19.py:3") {
		t.Errorf("at the end: %q", chosen(m))
	}
	if m = after(t, m, "s"); m.s.Cursor != 0 || !strings.Contains(m.View().Content, "s sort by growth") {
		t.Errorf("sorted by %v:\n%s", m.s.By, m.View().Content)
	}
	if m = after(t, m, "end", lookAt(t, growing(t, 3))); m.s.Cursor != 0 || chosen(m) == "" {
		t.Errorf("what is gone is chosen: %d", m.s.Cursor)
	}
}

// TestALeakIsNoneBeforeItIsKnown: what a verdict says in the run's beginning, or of a suspect, is not yet known.
func TestALeakIsNoneBeforeItIsKnown(t *testing.T) {
	look := lookAt(t, growing(t, 1))
	f := &look.Ranks[0].Result.Findings[0]
	f.Verdict = diff.Leak
	for _, c := range []struct {
		state live.State
		ended bool
		want  string
	}{{-1, false, "inconclusive"}, {live.Suspected, false, "possible leak"}, {live.Alarming, false, "leak"}, {live.Suspected, true, "leak"}, {-1, true, "leak"}} {
		look.Ended = c.ended
		look.Ranks[0].Suspects = nil
		if c.state >= 0 {
			look.Ranks[0].Suspects = []*live.Suspect{{State: c.state, Finding: f}}
		}
		if got := chosen(after(t, model{}, size, look)); !strings.HasPrefix(got, "> "+c.want+"  ") {
			t.Errorf("%v, ended %v: %q, want %s", c.state, c.ended, got, c.want)
		}
	}
}

func TestTheReportIsWrittenOnce(t *testing.T) {
	written := 0
	m := model{o: Options{Report: func() (string, error) {
		written++
		if written > 1 {
			return "", errors.New("no space left on device")
		}
		return "my-run.html", nil
	}}}
	if _, cmd := after(t, m, size).Update(pressed("r")); cmd != nil {
		t.Error("there is nothing to report yet")
	}
	m = after(t, m, size, lookAt(t, growing(t, 1)))
	for _, want := range []string{"wrote my-run.html", "no space left on device"} {
		next, cmd := m.Update(pressed("r"))
		if again, other := next.Update(pressed("r")); other != nil || !strings.Contains(again.View().Content, "writing the report") {
			t.Error("it is written twice at once")
		}
		m = after(t, next.(model), cmd()) //nolint:forcetypeassert // it is no other
		if got := m.View().Content; !strings.HasSuffix(got, want) {
			t.Errorf("%q is not said:\n%s", want, got)
		}
	}
	if m = after(t, m, "down"); strings.Contains(m.View().Content, "no space left") {
		t.Error("what a key did is said after the next one")
	}
}

func TestRanksAreShownInTurn(t *testing.T) {
	first, second := growing(t, 1), growing(t, 2)
	for _, s := range second.Snapshots {
		s.Rank = 1
	}
	m := after(t, model{}, size, lookAt(t, first, second))
	for _, want := range []int{1, 2, 1} {
		if len(m.s.Sites) != want || !strings.Contains(m.View().Content, "of 2 · step 120") {
			t.Errorf("%d sites, want %d:\n%s", len(m.s.Sites), want, m.View().Content)
		}
		m = after(t, m, "n")
	}
	if m = after(t, m, lookAt(t, first)); len(m.s.Sites) != 1 {
		t.Errorf("one rank is left: %d sites", len(m.s.Sites))
	}
}

// BenchmarkScreen draws 10,000 sites after a new look, which sorts them, and after a key.
func BenchmarkScreen(b *testing.B) {
	look := lookAt(b, growing(b, 10_000))
	m := after(b, model{}, tea.WindowSizeMsg{Width: 200, Height: 60}, look)
	if len(m.s.Sites) != 10_000 {
		b.Fatalf("%d sites", len(m.s.Sites))
	}
	for _, c := range []struct {
		name    string
		message any
	}{{"look", look}, {"sort", "s"}, {"move", "down"}, {"open", "enter"}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if next := after(b, m, c.message); !strings.Contains(next.View().Content, "q quit") {
					b.Fatal("nothing is drawn")
				}
			}
		})
	}
}
