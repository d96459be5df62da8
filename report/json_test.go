package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

func TestJSON(t *testing.T) {
	for _, c := range []struct {
		name, file string
		result     func(testing.TB) *diff.Result
	}{
		{"a leak has cause, holder and forecast", "leak.json.golden", pyramidResult},
		{"hostile names are escaped and decode to themselves", "hostile.json.golden", attacked},
		{"nothing live gives empty lists", "empty.json.golden", func(t testing.TB) *diff.Result { return analyzed(t, empty()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.result(t)
			got := rendered(t, func(b *bytes.Buffer) error { return JSON(b, r) })
			golden(t, c.file, got)
			for _, bad := range []rune{'\x1b', '\u202e', '\u009b', '\x7f'} {
				if bytes.ContainsRune(got, bad) {
					t.Errorf("it holds %U", bad)
				}
			}
			var back resultJSON
			if err := json.Unmarshal(got, &back); err != nil {
				t.Fatal(err)
			}
			for i, f := range back.Findings {
				for j, frame := range f.Frames {
					want := strings.ToValidUTF8(r.Findings[i].Rows[0].Frames[j].File, "\ufffd")
					if frame.File != want {
						t.Errorf("finding %d, frame %d: file %q, want %q", i, j, frame.File, want)
					}
				}
			}
		})
	}
}

func TestJSONTotalsSumToTheGrowth(t *testing.T) {
	var got resultJSON
	if err := json.Unmarshal(rendered(t, func(b *bytes.Buffer) error { return JSON(b, pyramidResult(t)) }), &got); err != nil {
		t.Fatal(err)
	}
	var totals, rows diff.Tally
	add := func(to *diff.Tally, t tallyJSON) {
		*to = plus(*to, diff.Tally{Blocks: *t.Blocks, Bytes: snapshot.Bytes(t.Bytes)})
	}
	for _, a := range got.Totals {
		add(&totals, a.tallyJSON)
	}
	for _, r := range got.Rows {
		add(&rows, r.Growth)
	}
	want := diff.Tally{Blocks: 51, Bytes: 40 << 20}
	if totals != want || rows != want || got.Growth.Bytes != int64(want.Bytes) {
		t.Errorf("totals %+v, rows %+v, growth %+v, want %+v", totals, rows, got.Growth, want)
	}
}
