package baseline_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

func TestParseNamesThePlaceOfAFault(t *testing.T) {
	for _, c := range []struct {
		name, text string
		line       int
		want       string
	}{
		{"a key that nobody knows", "version: 1\nknown:\n  - fingerprnt: x\n", 3, "unknown field"},
		{"another version", "version: 7\n", 1, "reads version 1"},
		{"no version", "known: []\n", 0, "write version: 1"},
		{"a bound that is no growth", "version: 1\nknown:\n  - fingerprint: x\n    max-growth: 4KiB\n", 4, "write 4KiB/step"},
		{"a bound below nothing", "version: 1\nknown:\n  - fingerprint: x\n    max-growth: -4KiB/step\n", 4, "not negative"},
		{"a list in place of text", "version: 1\nknown:\n  - fingerprint: x\n    owner: [ann, bob]\n", 4, "want text"},
		{"a word in place of a number", "version: one\n", 1, "want a whole number"},
		{"a version that is not whole", "version: 1.5\n", 1, "want a whole number"},
		{"a version that is not whole but in its name", "version: 1.0\n", 1, "want a whole number"},
		{"a version below nothing", "version: -1\n", 1, "want a whole number"},
		{"version 0", "version: 0\n", 1, "reads version 1, not 0"},
		{"a version in quotes", "version: \"1\"\n", 1, "want a whole number"},
		{"a list of versions", "version: [1]\n", 1, "want a whole number"},
		{"a day that is none", "version: 1\nknown:\n  - fingerprint: x\n    expires: soon\n", 4, "is no date"},
		{"an entry without fingerprint", "version: 1\nknown:\n  - owner: ann\n", 3, "needs its fingerprint"},
		{"one leak twice", "version: 1\nknown:\n  - fingerprint: x\n  - fingerprint: x\n", 4, "listed twice"},
		{"a list in a list, over and over", "version: 1\nknown: " + strings.Repeat("[", 300_000), 2, "too deeply"},
		{"a map in a map, over and over", "version: 1\nknown: " + strings.Repeat("{a: ", 200_000), 2, "too deeply"},
		{"lists in block style, over and over", "version: 1\nknown:\n" + strings.Repeat("- ", 300_000), 3, "too deeply"},
		{"a second document", "version: 1\nknown: []\n---\nversion: 1\n", 3, "one YAML document"},
		{"a fault far into a line", "version: 1\n" + "known: [" + strings.Repeat(" ", 5000) + "{fingerprnt: x}]\n", 2, "unknown field"},
		{"the mark of an order of bytes does not count as text", "\ufeffversion: 7\r\n", 1, "reads version 1"},
		{"a list that does not end", "version: 1\nknown: [\n", 2, "not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := baseline.Parse([]byte(c.text))
			fault, ok := errors.AsType[*baseline.Error](err)
			if !ok || !strings.Contains(err.Error(), c.want) || fault.Line != c.line {
				t.Fatalf("Parse: %v; want %q on line %d", err, c.want, c.line)
			}
			if len(fault.Excerpt()) > 300 {
				t.Errorf("an excerpt of %d bytes", len(fault.Excerpt()))
			}
			if c.line > 0 && !strings.HasSuffix(fault.Excerpt(), "^") {
				t.Errorf("no caret in\n%s", fault.Excerpt())
			}
		})
	}
}

// TestParseIsTheInverseOfBytes: whatever people write into the fields.
func TestParseIsTheInverseOfBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SampledFrom([]string{"", "ann", "#12", "yes", "12", "a: b", "-", "näher", "it's \"so\"", "null", "2027-01-31", "two\nlines"})
		file := &baseline.File{}
		for _, name := range rapid.SliceOfDistinct(rapid.StringMatching("s1-[0-9a-f]{4}"), rapid.ID[string]).Draw(t, "fingerprints") {
			e := baseline.Entry{Fingerprint: name, Where: words.Draw(t, "where"), Owner: words.Draw(t, "owner"), Issue: words.Draw(t, "issue"), Reason: words.Draw(t, "reason")}
			if rapid.Bool().Draw(t, "bound") {
				e.MaxGrowth = &diff.Growth{Bytes: snapshot.Bytes(rapid.IntRange(0, 999).Draw(t, "KiB")) * snapshot.KiB, Unit: diff.Step}
			}
			if rapid.Bool().Draw(t, "expires") {
				e.Expires = time.Date(2027, 1, rapid.IntRange(1, 31).Draw(t, "day"), 0, 0, 0, 0, time.UTC)
			}
			file.Known = append(file.Known, e)
		}
		text, err := file.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(string(text), "\n") || strings.HasSuffix(string(text), "\n\n") {
			t.Fatalf("it ends with %q", text[len(text)-2:])
		}
		back, err := baseline.Parse(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		again, err := back.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(text), string(again)); d != "" {
			t.Fatal(d)
		}
		if len(back.Known) != len(file.Known) {
			t.Fatalf("%d entries of %d", len(back.Known), len(file.Known))
		}
	})
}

func stack(root string, shift int) []snapshot.Frame {
	return []snapshot.Frame{
		{Function: "at::empty(long, at::Option)", Line: -1},
		{Function: "forward", File: root + "/lib/python3.11/site-packages/torch/nn/linear.py", Line: 100},
		{Function: "Model.forward", File: root + "/src/model.py", Line: 10 + shift},
		{Function: "train", File: root + "/src/train.py", Line: 20 + 2*shift},
	}
}

func leak(hash snapshot.Hash, rate float64, frames []snapshot.Frame) diff.Finding {
	return diff.Finding{
		Verdict: diff.Leak, Headline: 2, Rate: diff.Rate{Unit: diff.Step, Bytes: trend.Slope{Value: rate, Low: rate * 0.98, High: rate * 1.02, N: 20}},
		Rows: []*diff.Row{{Hash: hash, Frames: frames, After: diff.Tally{Blocks: 10, Bytes: snapshot.Bytes(10 * rate)}}},
	}
}

func TestFingerprintsSurviveWhatIsNoChangeOfTheLeak(t *testing.T) {
	row := func(f []snapshot.Frame) string { return baseline.Fingerprint(&diff.Row{Frames: f}) }
	here := row(stack("/home/ann/repo", 0))
	if there := row(stack("/ci/build/17", 5)); there != here {
		t.Errorf("other lines in another checkout: %s, not %s", there, here)
	}
	other := stack("/home/ann/repo", 0)
	other[1].Function = "forward_impl" // another version of the framework
	if row(other) != here {
		t.Error("a library's frame is part of the fingerprint")
	}
	other[2].Function = "Model.backward"
	if row(other) == here {
		t.Error("another function has the same fingerprint")
	}
	native := func(params string) string {
		return row([]snapshot.Frame{{Function: "grow" + params, File: "/usr/lib/libx.so", Line: -1}})
	}
	if native("(int)") != native("<float>(long)") {
		t.Error("parameters of a native function are part of the fingerprint")
	}
}

// TestAKnownLeakOfTheProcessIsKnownWithItsLine: entries of a baseline no longer matched, and two runs of one program differed.
func TestAKnownLeakOfTheProcessIsKnownWithItsLine(t *testing.T) {
	row := diff.Row{Device: snapshot.Device{Kind: snapshot.Process}, Label: "memory of the process outside recorded stacks"}
	without := baseline.Fingerprint(&row)
	if row.Frames = stack("/home/ann/repo", 0); baseline.Fingerprint(&row) != without {
		t.Errorf("%s with a line, %s without", baseline.Fingerprint(&row), without)
	}
}

func TestStates(t *testing.T) {
	now := time.Date(2027, 1, 31, 23, 0, 0, 0, time.UTC)
	name := baseline.Fingerprint(&diff.Row{Frames: stack("/r", 0)})
	bound := func(n snapshot.Bytes, unit diff.Unit) *diff.Growth { return &diff.Growth{Bytes: n, Unit: unit} }
	one := []diff.Finding{leak(1, 1000, stack("/x", 3))}
	bounded, open := leak(1, 1000, stack("/x", 3)), leak(1, 1000, stack("/x", 3))
	bounded.Verdict, open.Verdict = diff.Bounded, diff.Inconclusive
	for _, c := range []struct {
		name  string
		entry baseline.Entry
		found []diff.Finding
		leak  baseline.State
		fate  baseline.State
	}{
		{"no entry speaks of it", baseline.Entry{Fingerprint: "other"}, one, baseline.New, baseline.Unused},
		{"it grows within its bound", baseline.Entry{Fingerprint: name, MaxGrowth: bound(1000, "step")}, one, baseline.Known, ""},
		{"no bound lets any growth pass", baseline.Entry{Fingerprint: name}, one, baseline.Known, ""},
		{"it surely grows faster", baseline.Entry{Fingerprint: name, MaxGrowth: bound(979, "step")}, one, baseline.Regressed, ""},
		{"it may grow no faster", baseline.Entry{Fingerprint: name, MaxGrowth: bound(981, "step")}, one, baseline.Known, ""},
		{"two leaks of one function share the bound", baseline.Entry{Fingerprint: name, MaxGrowth: bound(1500, "step")}, []diff.Finding{leak(1, 1000, stack("/x", 3)), leak(2, 1000, stack("/x", 4))}, baseline.Regressed, ""},
		{"another unit is not to be compared", baseline.Entry{Fingerprint: name, MaxGrowth: bound(5000, "snapshot")}, one, baseline.New, ""},
		{"the last day counts", baseline.Entry{Fingerprint: name, Expires: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)}, one, baseline.Known, ""},
		{"the day after does not", baseline.Entry{Fingerprint: name, Expires: time.Date(2027, 1, 30, 0, 0, 0, 0, time.UTC)}, one, baseline.New, baseline.Expired},
		{"it is there and leaks not", baseline.Entry{Fingerprint: name}, []diff.Finding{bounded}, "", baseline.Fixed},
		{"it may yet leak", baseline.Entry{Fingerprint: name}, []diff.Finding{open}, "", baseline.Undecided},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := &diff.Result{Last: new(snapshot.Snapshot), Findings: c.found}
			for i := range c.found {
				result.Rows = append(result.Rows, *c.found[i].Rows[0])
			}
			file := &baseline.File{Known: []baseline.Entry{c.entry}}
			o := file.Judge([]baseline.Ranked{{Rank: snapshot.NoRank, Result: result}}, now)
			var leak, fate baseline.State
			if len(o.Leaks) > 0 {
				leak = o.Leaks[0].State
			}
			if len(o.Fates) > 0 {
				fate = o.Fates[0].State
			}
			if leak != c.leak || fate != c.fate {
				t.Errorf("leak %q, entry %q; want %q, %q", leak, fate, c.leak, c.fate)
			}
			if fails := len(o.Failing()) > 0; fails != (c.leak == baseline.New || c.leak == baseline.Regressed) {
				t.Errorf("fails: %v", fails)
			}
			if len(o.Undecided) > 0 {
				t.Error("what an entry speaks of casts doubt")
			}
		})
	}
}

func TestWhatKeepsToADeclaredBoundIsNotInDoubt(t *testing.T) {
	open, declared := leak(1, 1000, stack("/x", 0)), leak(2, 1000, stack("/x", 0))
	open.Verdict, declared.Verdict = diff.Inconclusive, diff.Inconclusive
	declared.Bound = &snapshot.Bound{Where: "forward", Blocks: 100}
	of := func(found ...diff.Finding) *diff.Result {
		return &diff.Result{Last: new(snapshot.Snapshot), Findings: found}
	}
	for _, c := range []struct {
		name     string
		result   *diff.Result
		doubt    bool
		declared int
	}{
		{"growth of which nothing is declared is", of(open), true, 0},
		{"growth below its bound is not", of(declared), false, 1},
		{"each is judged by itself", of(declared, open), true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := (&baseline.File{}).Judge([]baseline.Ranked{{Rank: snapshot.NoRank, Result: c.result}}, time.Time{})
			if o.InDoubt(c.result) != c.doubt || len(o.Declared) != c.declared {
				t.Errorf("doubt %v, %d declared", o.InDoubt(c.result), len(o.Declared))
			}
		})
	}
}

func TestALeakOfSeveralRanksIsOne(t *testing.T) {
	ranks := []baseline.Ranked{
		{Rank: 0, Result: &diff.Result{Last: new(snapshot.Snapshot), Findings: []diff.Finding{leak(1, 1000, stack("/x", 0))}}},
		{Rank: 3, Result: &diff.Result{Last: new(snapshot.Snapshot), Findings: []diff.Finding{leak(1, 3000, stack("/x", 0))}}},
	}
	o := (&baseline.File{}).Judge(ranks, time.Time{})
	if len(o.Leaks) != 1 || !cmp.Equal(o.Leaks[0].Ranks, []int{0, 3}) || o.Leaks[0].Finding.Rate.Bytes.Value != 3000 {
		t.Errorf("leaks: %+v", o.Leaks)
	}
}

// TestAnUpdateLetsPass what it was made of, keeps what people wrote, and changes
// nothing the second time.
func TestAnUpdateLetsPass(t *testing.T) {
	now := time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)
	fixed := leak(9, 10, []snapshot.Frame{{Function: "gone", File: "/x/gone.py", Line: 1}})
	fixed.Verdict = diff.Bounded
	worse := []snapshot.Frame{{Function: "worse", File: "/x/worse.py", Line: 1}}
	result := &diff.Result{Last: new(snapshot.Snapshot), Findings: []diff.Finding{leak(1, 123456, stack("/x", 0)), leak(2, 98765, stack("/x", 1)), leak(3, 5000, worse), fixed}, Rows: []diff.Row{*fixed.Rows[0]}}
	ranks := []baseline.Ranked{{Rank: snapshot.NoRank, Result: result}}
	file := &baseline.File{Known: []baseline.Entry{
		{Fingerprint: baseline.Fingerprint(fixed.Rows[0])},
		{Fingerprint: baseline.Fingerprint(&diff.Row{Frames: worse}), Owner: "ann", MaxGrowth: &diff.Growth{Bytes: 1, Unit: diff.Step}},
		{Fingerprint: "unused", Reason: "of another job"},
	}}
	place := func(*diff.Finding) string { return "here" }
	next := file.Update(file.Judge(ranks, now), place)
	text, err := next.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	read, err := baseline.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	o := read.Judge(ranks, now)
	if n := len(o.Failing()); n > 0 || len(read.Known) != 3 {
		t.Errorf("%d leaks fail, %d entries:\n%s", n, len(read.Known), text)
	}
	if !strings.Contains(string(text), "owner: ann") || !strings.Contains(string(text), "of another job") {
		t.Errorf("lost what people wrote:\n%s", text)
	}
	again, err := read.Update(o, place).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(text), string(again)); d != "" {
		t.Errorf("a second update:\n%s", d)
	}
}
