package memray

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/totals/totalstest"
)

func decodePage(data []byte) (*snapshot.Snapshot, error) {
	return totalstest.Decode(DecodePage, data)
}

// page of testdata, unpacked.
func realPage(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return totalstest.Unpacked(t, data)
}

// recorded is the table of the recording that the pages are of.
func recorded(t testing.TB) map[string][2]int64 { return tableOf(t, "recording.csv") }

func tableOf(t testing.TB, name string) map[string][2]int64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return slow(t, data)
}

func TestAFlamegraphHoldsWhatTheTableOfItsRecordingDoes(t *testing.T) {
	for name, recording := range map[string]string{"flamegraph.html.gz": "recording.csv", "inverted.html.gz": "recording.csv", "old_flamegraph.html.gz": "old_recording.csv"} {
		t.Run(name, func(t *testing.T) {
			data := realPage(t, name)
			if !DetectPage(data[:1024]) {
				t.Error("not detected")
			}
			s, err := decodePage(data)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tableOf(t, recording), held(s)); d != "" {
				t.Errorf("-table +page\n%s", d)
			}
			if want := "the page is of what was never freed"; !slices.Contains(s.Notes, want) {
				t.Errorf("notes %q, want %q", s.Notes, want)
			}
		})
	}
}

// outer are the frames of memray's own that a flamegraph over time has and others lack.
var outer = regexp.MustCompile(`\|_run_with_file_output;[^|]*\|run;.*$`)

func TestAFlamegraphOverTimeHoldsWhatLivesAtItsEnd(t *testing.T) {
	s, err := decodePage(realPage(t, "temporal.html.gz"))
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][2]int64)
	for stack, n := range held(s) {
		got[outer.ReplaceAllString(stack, "")] = n
	}
	if d := cmp.Diff(recorded(t), got); d != "" {
		t.Errorf("-table +page\n%s", d)
	}
}

// overTime is a small page: what was live was most at the second of memray's snapshots.
const overTime = "<title>memray - temporal flamegraph report</title>\nconst packed_data = " +
	`{"high_water_mark_by_snapshot":[10,27,27],"intervals":[[0,1,1,1,10],[0,null,2,1,7],[1,2,2,2,20],[2,3,1,2,20],[3,null,1,1,99]],` +
	`"nodes":{"children":[[1],[2],[]],"function":[0,0,1],"filename":[2,2,2],"lineno":[0,7,8]},"strings":["f","g","a.py"]}` + ";\n"

func TestAFlamegraphOverTimeIsReadAtItsPeakOrItsEnd(t *testing.T) {
	leaks := strings.Replace(strings.Replace(overTime, "[10,27,27]", "null", 1), "report", "report (memory leaks)", 1)
	for _, c := range []struct {
		name, page, note string
		want             map[string][2]int64
	}{
		{"the first of two peaks", overTime, "the page is of what was live at the peak", map[string][2]int64{"g;a.py;8|f;a.py;7": {3, 27}}},
		{"what was never freed", leaks, "the page is of what was never freed", map[string][2]int64{"f;a.py;7": {1, 99}, "g;a.py;8|f;a.py;7": {1, 7}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := decodePage([]byte(c.page))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, held(s)); d != "" || !slices.Contains(s.Notes, c.note) {
				t.Errorf("notes %q; -want +got\n%s", s.Notes, d)
			}
		})
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"an interval of four numbers", "[0,1,1,1,10]", "[0,1,1,1]", "an interval of 4 numbers"},
		{"an interval of six numbers", "[0,1,1,1,10]", "[0,1,1,1,10,1]", "an interval of more than 5 numbers"},
		{"an interval of no node", "[0,1,1,1,10]", "[0,1,3,1,10]", "an interval of node 3 of 3"},
		{"an interval without a beginning", "[0,1,1,1,10]", "[null,1,1,1,10]", "where a whole number should be"},
		{"an interval of less than nothing", "[0,null,2,1,7]", "[0,null,2,1,-7]", "an interval of -7 bytes"},
		{"intervals beyond all memory", "[0,null,2,1,7]", "[0,null,2,1,9223372036854775807]", "an interval of 9223372036854775807 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decodePage([]byte(strings.Replace(overTime, c.old, c.new, 1)))
			totalstest.Refused(t, err, c.want)
		})
	}
}

func TestAPageOfATableHoldsTheInnermostFrames(t *testing.T) {
	for page, recording := range map[string]string{"table.html.gz": "recording.csv", "old_table.html.gz": "old_recording.csv"} {
		s, err := decodePage(realPage(t, page))
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[string][2]int64)
		for stack, n := range tableOf(t, recording) {
			frame, _, _ := strings.Cut(stack, "|")
			want[frame] = [2]int64{want[frame][0] + n[0], want[frame][1] + n[1]}
		}
		if d := cmp.Diff(want, held(s)); d != "" {
			t.Errorf("%s: -table +page\n%s", page, d)
		}
	}
}

// flame is a small page: nodes 1 and 2 below the root, with 10 and 5 bytes.
const flame = "<title>memray - flamegraph report</title>\nconst packed_data = " +
	`{"nodes":{"children":[[1],[2],[]],"function":[0,0,1],"filename":[2,2,2],"lineno":[0,7,8],"value":[15,15,5],"n_allocations":[3,3,1]},"strings":["f","g","a.py"]}` + ";\n"

func TestBrokenPages(t *testing.T) {
	if s, err := decodePage([]byte(flame)); err != nil || cmp.Diff(map[string][2]int64{"f;a.py;7": {2, 10}, "g;a.py;8|f;a.py;7": {1, 5}}, held(s)) != "" {
		t.Fatalf("the page that is broken below is not read: %v", err)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"a page of another report", "flamegraph report", "tree report", "neither a flamegraph nor a table"},
		{"a page without data", "packed_data", "no_data", "ends in the middle"},
		{"data of no kind that is known", "packed_data", "data", "a node without a location"},
		{"a list without end", "[15,15,5]", "[15", "where a whole number should be"},
		{"a list of an object's end", "[15,15,5]", "[15}", "'}' where ',' should be: no page of memray's"},
		{"a circle", "[[1],[2],[]]", "[[1],[2],[1]]", "node 1 below node 2"},
		{"a node below itself", "[[1],[2],[]]", "[[1],[1],[]]", "node 1 below node 1"},
		{"a node below two", "[[1],[2],[]]", "[[1,2],[2],[]]", "node 2 is below two others"},
		{"a node below none", "[[1],[2],[]]", "[[1],[],[]]", "node 2 is below none"},
		{"a node that is passed over", "[[1],[2],[]]", "[[2],[],[]]", "node 1 is below none"},
		{"a node at the end of numbers", "[[1],[2],[]]", "[[1],[9223372036854775807],[]]", "its tables take more memory"},
		{"values that lack", "[15,15,5]", "[15,15]", "3 nodes, and 2 values of value"},
		{"a text that is not there", `["f","g","a.py"]`, `["f","g"]`, "node 1 has text 2 of 2 as its filename"},
		{"a text below none", "[0,0,1]", "[0,-1,1]", "node 1 has text -1 of 3 as its function"},
		{"less than what is below", "[15,15,5]", "[15,4,5]", "this is a difference of profiles"},
		{"a value that is a text", "[15,15,5]", `[15,"15",5]`, "where a whole number should be"},
		{"a text that is a number", `"f",`, "1,", "where a text should be"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(flame, c.old, c.new, 1)
			_, err := decodePage([]byte(text))
			totalstest.Refused(t, err, c.want)
		})
	}
}

// tree is flame as memray 1.5 would have written it.
const tree = "<title>memray - flamegraph report</title>\nconst data = " +
	`{"children":[{"children":[{"location":["g","a.py",8],"n_allocations":1,"value":5}],"interesting":true,"location":["f","a.py","7"],"n_allocations":3,"value":15}],` +
	`"location":["&lt;tracker&gt;","<b>memray</b>",0],"n_allocations":3,"value":15}` + ";\n"

func TestBrokenTrees(t *testing.T) {
	s, err := decodePage([]byte(tree))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string][2]int64{"f;a.py;7": {2, 10}, "g;a.py;8|f;a.py;7": {1, 5}}, held(s)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"a tree without end", `"value":15}` + ";\n", `"value":15`, "ends in the middle"},
		{"a location of two parts", `["g","a.py",8]`, `["g","a.py"]`, "a location of 2 parts"},
		{"a location of four parts", `["g","a.py",8]`, `["g","a.py",8,9]`, "a location of more than 3 parts"},
		{"a name that is a number", `["g",`, `[1,`, "where a text should be"},
		{"a value that is a text", `"value":5`, `"value":"5"`, "where a whole number should be"},
		{"more than it is called from", `"value":5`, `"value":16`, "this is a difference of profiles"},
		{"a node that is none", `[{"location":["g"`, `[7,{"location":["g"`, "'7' where '{' should be"},
		{"calls without end", `{"children":[{`, `{"children":[{` + strings.Repeat(`"children":[{`, 20_000), "a tree deeper than 16384"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decodePage([]byte(strings.Replace(tree, c.old, c.new, 1)))
			totalstest.Refused(t, err, c.want)
		})
	}
}

func TestARowWithoutItsStackIsRefused(t *testing.T) {
	const begin = "<title>memray - table report</title>\nconst packed_data = "
	for row, want := range map[string]string{
		`{}`:                           "a row without a stack_trace",
		`{"n_allocations":1,"size":2}`: "a row without a stack_trace",
		`{"n_allocations":1,"size":2,"stack_trace":""}`: "",
	} {
		_, err := decodePage([]byte(begin + "[" + row + "];\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", row, err, want)
		}
	}
}

func TestFramesOfATablesRows(t *testing.T) {
	for text, want := range map[string]snapshot.Frame{
		"f at a.py:3":           {Function: "f", File: "a.py", Line: 3},
		"f at /my at/a.py:3":    {Function: "f", File: "/my at/a.py", Line: 3},
		"f at <frozen abc>:106": {Function: "f", File: "<frozen abc>", Line: 106},
		"f at a.py":             {Function: "f", File: "a.py", Line: -1},
		"f":                     {Function: "f", Line: -1},
	} {
		if got := rowFrame(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// slowFlame adds up a flamegraph with encoding/json, as a whole.
func slowFlame(data []byte) (map[string][2]int64, bool) {
	_, text, ok := bytes.Cut(data, []byte("packed_data = "))
	// Keys of a struct would be found in capitals too.
	var page, columns map[string]json.RawMessage
	var texts []string
	var children [][]int
	values := make(map[string][]int64)
	isPage := ok && json.NewDecoder(bytes.NewReader(text)).Decode(&page) == nil && member(page, "nodes", &columns) && member(page, "strings", &texts) && member(columns, "children", &children)
	for _, column := range []string{nodeFunction, nodeFile, nodeLine, nodeBytes, nodeCount} {
		var v []int64
		isPage = isPage && member(columns, column, &v)
		values[column] = v
	}
	if !isPage {
		return nil, false
	}
	_, report, _ := bytes.Cut(data, []byte(title))
	report, _, _ = bytes.Cut(report, []byte("\n"))
	inverted := bytes.Contains(report, []byte("inverted"))
	out := make(map[string][2]int64)
	count, size := values[nodeCount], values[nodeBytes]
	var walk func(node int, stack []string)
	walk = func(node int, stack []string) {
		own := [2]int64{count[node], size[node]}
		for _, child := range children[node] {
			own[0] -= count[child]
			own[1] -= size[child]
			line := values[nodeLine][child]
			if line <= 0 || line >= 1<<31 {
				line = -1
			}
			name := func(place int64) string { return html.UnescapeString(texts[place]) }
			frame := fmt.Sprintf("%s;%s;%d", name(values[nodeFunction][child]), name(values[nodeFile][child]), line)
			below := append([]string{frame}, stack...)
			if inverted {
				below = append(slices.Clone(stack), frame)
			}
			walk(child, below)
		}
		if own != [2]int64{} {
			key := strings.Join(stack, "|")
			out[key] = [2]int64{out[key][0] + own[0], out[key][1] + own[1]}
		}
	}
	if len(children) > 0 {
		walk(0, nil)
	}
	return out, true
}

// member decodes an object's value into v; one that is not there leaves it.
func member(object map[string]json.RawMessage, key string, v any) bool {
	raw, ok := object[key]
	return !ok || json.Unmarshal(raw, v) == nil
}

func FuzzDecodePage(f *testing.F) {
	f.Add([]byte(flame))
	f.Add([]byte(strings.Replace(flame, "flamegraph", "inverted flamegraph", 1)))
	f.Add([]byte("<title>memray - table report</title>\npacked_data = " + `[{"n_allocations":1,"size":2,"stack_trace":"f at a.py:3","tid":"0x1"}]`))
	f.Add([]byte(overTime))
	for _, name := range []string{"flamegraph.html.gz", "inverted.html.gz", "temporal.html.gz", "table.html.gz", "old_flamegraph.html.gz"} {
		f.Add(realPage(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodePage(data)
		if err != nil {
			totalstest.Refused(t, err, "")
			return
		}
		_, report, _ := bytes.Cut(data, []byte(title))
		report, _, _ = bytes.Cut(report, []byte("\n"))
		if bytes.Contains(report, []byte("table report")) || bytes.Contains(report, []byte("temporal")) || bytes.Contains(data, []byte("const data = ")) {
			return
		}
		want, ok := slowFlame(data)
		if !ok || bytes.Count(data, []byte(`"nodes"`)) != 1 {
			return // JSON that encoding/json has stricter views of, or keys that are there twice
		}
		var wantBytes, gotBytes int64
		for _, n := range want {
			wantBytes += n[1]
		}
		for _, n := range held(s) {
			gotBytes += n[1]
		}
		if wantBytes != gotBytes {
			t.Fatalf("%d bytes, want %d", gotBytes, wantBytes)
		}
	})
}

func TestWhatAPageAsksForIsBounded(t *testing.T) {
	within := func(name, page, at, piece string, count int) totalstest.Flood {
		before, after, ok := strings.Cut(page, at)
		if !ok {
			t.Fatalf("%s is not in the page", at)
		}
		return totalstest.Flood{Name: name, Before: before + at, Piece: piece, Count: count, After: after, Packed: true}
	}
	totalstest.Flooded(t, decodePage, totalstest.TooMuchMemory,
		within("texts", flame, `"strings":[`, `"",`, 2_700_000),
		within("a column", flame, `"lineno":[`, `0,`, 5_400_000),
		within("intervals", overTime, `"intervals":[`, `[0,0,0,0,0],`, 1_100_000),
		within("nodes of a tree", tree, `"children":[`, `{"location":["","",0]},`, 1_100_000),
		within("peaks", overTime, `by_snapshot":[`, `0,`, 5_400_000),
		within("nodes", flame, `"children":[`, `[6000000],`, 1),
		totalstest.Flood{Name: "figures of nodes over time", Before: strings.Replace(overTime, "[[1],[2],[]]", "[[2000000]]", 1), Packed: true})
	totalstest.Flooded(t, decodePage, totalstest.TooManySteps,
		totalstest.Flood{Name: "no mark", Piece: strings.Repeat("a", 1<<20), Count: 200, Packed: true})
	const nodes = 800_000 // 48 bytes each, and 8 for its frame
	columns := ""
	for _, name := range []string{nodeFunction, nodeFile, nodeLine, nodeBytes, nodeCount} {
		columns += `"` + name + `":[` + strings.Repeat("0,", nodes-1) + "0],"
	}
	totalstest.Flooded(t, decodePage, totalstest.TooMuchMemory,
		totalstest.Flood{Name: "frames of nodes", Before: strings.SplitAfter(flame, "{")[0] + `"nodes":{` + columns + fmt.Sprintf(`"children":[[%d]]}}`, nodes-1), Packed: true})
}
