package report

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

func TestPage(t *testing.T) {
	for _, c := range []struct {
		name, file string
		result     func(testing.TB) *diff.Result
		about      func(r *diff.Result) About
	}{
		{"a leak with all that is known of it", "leak.html.golden", pyramidResult, func(r *diff.Result) About {
			started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			return About{
				Name: "my-run", Version: "v1", Commands: []string{"memdiag diff my-run"},
				Info:  snapshot.Info{Workload: "L30", Command: []string{"memdiag", "record"}, Backend: "cpu", Seed: 7, Host: "box", Started: started, Version: "v1"},
				Ranks: []RankResult{{Rank: 0, Result: r}, {Rank: 1, Why: "rank 1 has one snapshot"}},
			}
		}},
		{"hostile names are text", "hostile.html.golden", attacked, func(*diff.Result) About {
			const name = "</title><script>alert(1)</script>\x1b[31m"
			return About{Name: name, Version: name, Commands: []string{name}, Info: snapshot.Info{Workload: name, Command: []string{name}, Host: name, Version: name}, Ranks: []RankResult{{Rank: 3, Why: name}}}
		}},
		{"nothing at all", "empty.html.golden", func(t testing.TB) *diff.Result { return analyzed(t, empty()) }, func(*diff.Result) About { return About{} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.result(t)
			got := rendered(t, func(b *bytes.Buffer) error { return Page(b, r, c.about(r)) })
			golden(t, c.file, withoutAssets(got))
			if n := bytes.Count(got, []byte("<script")); n != 2 {
				t.Errorf("%d scripts, want the data and ours", n)
			}
			if n := strings.IndexFunc(string(withoutAssets(got)), func(r rune) bool { return r != '\n' && unprintable(r) && r != '\u00a0' }); n >= 0 {
				t.Errorf("an unprintable character at byte %d", n)
			}
		})
	}
}

func TestThePageSaysWhatMakesStacksOneLeak(t *testing.T) {
	r := pyramidResult(t)
	f := &r.Findings[0]
	f.Rows, f.Joined = append(f.Rows, f.Rows[0]), 1
	page := string(rendered(t, func(b *bytes.Buffer) error { return Page(b, r, About{}) }))
	if !strings.Contains(page, "Allocated by 2 stacks that one holder retains<") {
		t.Error("the page does not say that one holder keeps them")
	}
}

func TestPageOfOneSnapshot(t *testing.T) {
	dated := pyramidResult(t).Last
	for _, c := range []struct {
		name, file string
		snapshot   *snapshot.Snapshot
	}{
		{"births tell a leak", "one.html.golden", dated},
		{"hostile names are text", "onehostile.html.golden", attacked(t).Last},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := rendered(t, func(b *bytes.Buffer) error { return PageOfOne(b, c.snapshot, About{Name: "snapshot_50"}) })
			golden(t, c.file, withoutAssets(got))
			if n := bytes.Count(got, []byte("<script")); n != 2 {
				t.Errorf("%d scripts, want the data and ours", n)
			}
		})
	}
}

var (
	styleElement  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	scriptElement = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	policyHash    = regexp.MustCompile(`sha256-.*?&#39;`)
)

// withoutAssets leaves out of a page what is the same in every page.
func withoutAssets(page []byte) []byte {
	page = styleElement.ReplaceAll(page, []byte("<style>…</style>"))
	page = scriptElement.ReplaceAll(page, []byte("<script>…</script>"))
	return policyHash.ReplaceAll(page, []byte("sha256-…&#39;"))
}

// A policy whose hashes are not those of the page's own script and style leaves a
// page without either.
func TestThePolicyAllowsWhatThePageBrings(t *testing.T) {
	text := string(rendered(t, func(b *bytes.Buffer) error { return Page(b, pyramidResult(t), About{}) }))
	head, _, _ := strings.Cut(text, "<style>")
	head = strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(head)
	for name, element := range map[string]*regexp.Regexp{"style-src": styleElement, "script-src": scriptElement} {
		found := element.FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("no element for %s", name)
		}
		if want := name + " " + sourceHash(found[1]); !strings.Contains(head, want) {
			t.Errorf("no %q in %s", want, head)
		}
	}
	if strings.Contains(head, "unsafe") || !strings.Contains(head, "default-src 'none'") {
		t.Errorf("the policy is not strict: %s", head)
	}
}

func TestPageNamesNothingOutsideOfItself(t *testing.T) {
	text := string(rendered(t, func(b *bytes.Buffer) error { return Page(b, pyramidResult(t), About{Name: "run"}) }))
	for _, reference := range regexp.MustCompile(`(?:src|href|action)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(reference[1], "#") {
			t.Errorf("refers to %q", reference[1])
		}
	}
}

// The checksums are those of the files in uplot-1.6.32.tgz as npm serves it, whose
// own checksum is in docs/dependencies.md.
func TestUPlotIsAsItsAuthorPublishedIt(t *testing.T) {
	for name, want := range map[string]string{
		"LICENSE":           "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
		"uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
	} {
		text, err := assets.ReadFile("assets/uplot/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(text)); got != want {
			t.Errorf("%s has SHA-256 %s, want %s", name, got, want)
		}
	}
}

// Cells of a segment map cover the segments once, and their classes sum to what
// the blocks say.
func TestSegmentMapAccountsForAllReserved(t *testing.T) {
	r := pyramidResult(t)
	maps := mapViews(r.Last, leaksOf(r))
	if len(maps) != 1 {
		t.Fatalf("%d maps, want 1", len(maps))
	}
	cells := 0
	for _, l := range maps[0].Layers {
		for _, run := range regexp.MustCompile(`h(\d+)v`).FindAllStringSubmatch(l.Path, -1) {
			width, err := strconv.Atoi(run[1])
			if err != nil {
				t.Fatal(err)
			}
			cells += width / cellSize
		}
	}
	if cells != 2048 { // 64 MiB in cells of 32 KiB
		t.Errorf("%d cells, want 2048; %s", cells, maps[0].Scale)
	}
	want := map[string]string{"leak": "25.0 MiB", "live": "24.0 MiB", "pending": "1.00 MiB", "free": "14.0 MiB"}
	for _, l := range maps[0].Layers {
		if l.Bytes != want[l.Class] {
			t.Errorf("%s: %s, want %s", l.Class, l.Bytes, want[l.Class])
		}
	}
}

// A block that claims to lie outside of its segment used to be the way to index
// out of a map.
func TestSegmentMapOfBlocksThatLie(t *testing.T) {
	r := pyramidResult(t)
	b := &r.Last.Blocks
	b.Address[0], b.Size[1] = 5, 1<<62
	for i := range b.Address[2:6] {
		b.Address[i+2] = ^uint64(0)
	}
	_ = rendered(t, func(b *bytes.Buffer) error { return Page(b, r, About{}) })
}

func BenchmarkPage(b *testing.B) {
	r := pyramidResult(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := Page(io.Discard, r, About{}); err != nil {
			b.Fatal(err)
		}
	}
}
