package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/converted"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// readBack is the sites of what SnapshotJSON wrote, worked out from the text alone.
func readBack(t *testing.T, text []byte) map[string]diff.Tally {
	t.Helper()
	var s struct {
		Schema   string
		Devices  []fullDeviceJSON
		Stacks   []stackJSON
		Segments []segmentJSON
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Schema != converted.Schema {
		t.Errorf("schema %q", s.Schema)
	}
	out := make(map[string]diff.Tally)
	for _, seg := range s.Segments {
		d := s.Devices[seg.Device]
		for _, b := range seg.Blocks {
			if b.State != "live" || b.Stack == 0 {
				continue
			}
			n := int64(1)
			if b.Count != nil {
				n = *b.Count
			}
			key := d.Kind + ":" + strconv.Itoa(d.Index) + " " + s.Stacks[b.Stack].Hash
			sum := out[key]
			out[key] = plus(sum, diff.Tally{Blocks: n, Bytes: snapshot.Bytes(b.Size), Requested: snapshot.Bytes(b.Requested)})
		}
	}
	return out
}

func TestSnapshotJSON(t *testing.T) {
	totals := last(pyramid())
	totals.Segments = slices.Clone(totals.Segments)
	totals.Segments[0].Address, totals.Blocks.Address = 0, make([]uint64, totals.Blocks.Len())
	totals.Blocks.BirthStep, totals.Blocks.BirthTime = nil, nil
	totals.Blocks.Count = slices.Repeat([]int64{1 << 40}, totals.Blocks.Len())
	attacked := attacked(t).Last
	attacked.Notes = []string{"\x1b[31m\u202e"}
	for _, c := range []struct {
		name, file string
		s          *snapshot.Snapshot
	}{
		{"every block of a snapshot", "snapshot.json.golden", last(pyramid())},
		{"totals have counts and no addresses", "snapshottotals.json.golden", totals},
		{"hostile names are escaped", "snapshothostile.json.golden", attacked},
		{"nothing live gives empty lists", "snapshotempty.json.golden", last(empty())},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := rendered(t, func(b *bytes.Buffer) error { return SnapshotJSON(b, c.s) })
			golden(t, c.file, got)
			if strings.ContainsAny(string(got), "\x1b\u202e\u009b\x7f") {
				t.Error("it holds what a terminal obeys")
			}
			back := readBack(t, got)
			for _, site := range c.s.Sites() {
				if site.Stack == snapshot.NoStack {
					continue
				}
				key := deviceName(c.s.Devices[site.Device]) + " " + hashText(site.Hash)
				if want := (diff.Tally{Blocks: site.Count, Bytes: site.Bytes, Requested: site.Requested}); back[key] != want {
					t.Errorf("%s: %+v, want %+v", key, back[key], want)
				}
				delete(back, key)
			}
			for key := range back {
				t.Errorf("%s is in no site", key)
			}
		})
	}
}

// What is written is read back as it was, column by column.
func TestSnapshotJSONIsReadBackEqual(t *testing.T) {
	whole := last(pyramid())
	whole.Mark.StepCounted, whole.Mark.BatchElements, whole.SamplePeriod = true, 32, 512
	whole.History = snapshot.History{Events: 9, Last: whole.Mark.Time, LostFrees: 2, Process: "p"}
	whole.Blocks.Owners = make([]snapshot.Owners, whole.Blocks.Len())
	whole.Blocks.Owners[3] = snapshot.OwnedByTape | snapshot.Lost
	whole.Blocks.Category = make([]snapshot.Category, whole.Blocks.Len())
	whole.Blocks.Category[3] = snapshot.OptimizerState
	whole.Holders[0].Counted, whole.Holders[0].Bound = 40, 5000
	unowned := last(pyramid())
	unowned.Blocks.Owners = make([]snapshot.Owners, unowned.Blocks.Len())
	uncounted := last(pyramid())
	uncounted.Blocks.Count = make([]int64, uncounted.Blocks.Len())
	for name, s := range map[string]*snapshot.Snapshot{
		"all that there is": whole, "owners that hold nothing": unowned, "blocks that nobody counted": uncounted, "no times of birth": last(pyramid()),
		"hostile names": last(pair(hostile)), "nothing": last(empty()),
	} {
		text := rendered(t, func(b *bytes.Buffer) error { return SnapshotJSON(b, s) })
		if !converted.Detect(text) {
			t.Errorf("%s: not known by its beginning", name)
		}
		back, err := converted.Decode("x.json", bytes.NewReader(text), int64(len(text)), totals.Options{Stacks: s.Stacks})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(s.Notes) == 0 {
			back.Notes = s.Notes // none either way
		}
		if name == "hostile names" {
			back.Blocks.Stack = s.Blocks.Stack // a byte that is no UTF-8 is no text of JSON
		}
		equal := cmp.Options{cmpopts.IgnoreFields(snapshot.Snapshot{}, "Stacks", "At"), cmpopts.EquateEmpty()}
		if s.Blocks.Len() > 0 {
			equal = equal[:1] // a column of none is not one of zeros
		}
		if d := cmp.Diff(s, back, equal); d != "" {
			t.Errorf("%s: -written +read\n%s", name, d)
		}
	}
}
