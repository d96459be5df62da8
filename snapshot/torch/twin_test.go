package torch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// This file is the twin of the builder: what a tree means, by looking keys up
// in it, as text that describes the snapshot. The reader must say the same.

type twinSegment struct {
	device, address, size int64
	line                  string
	blocks                []twinBlock
}

type twinBlock struct {
	address, size, requested int64
	state                    snapshot.State
	frames                   []snapshot.Frame
	step                     int64
}

var errTwin = errors.New("the tree is not a snapshot")

// twin describes the snapshot in a tree.
func twin(root any) (string, error) {
	parts, err := twinParts(root)
	if err != nil {
		return "", err
	}
	segments, traces, notes := parts.segments, parts.traces, parts.annotations
	live := map[[2]int64][3]int64{} // device, address → time, size, step
	var events, lost, first, last int64
	byDevice := map[int][]any{-1: twinHostEvents(parts.hostTraces)}
	for device, tr := range traces {
		byDevice[device] = twinItems(tr)
	}
	for device, entries := range byDevice {
		stamped := int64(-1)
		for _, e := range entries {
			events++
			d, ok := e.(*dict)
			if !ok {
				return "", errTwin
			}
			t := twinInt(d.get("time_us"), 0)
			if t > 0 {
				if first == 0 || t < first {
					first = t
				}
				last = max(last, t)
			}
			var step int64
			if text, _ := d.get("user_metadata").(string); device >= 0 && twinStamp(text, &step) {
				stamped = step
			}
			key := [2]int64{int64(device), twinInt(d.get("addr"), -1)} // -1 is no address
			switch d.get("action") {
			case "alloc":
				if key[1] != -1 {
					live[key] = [3]int64{t, twinInt(d.get("size"), 0), stamped}
				}
			case "free_completed":
				if _, ok := live[key]; !ok {
					lost++
				}
				delete(live, key)
			}
		}
	}
	ends := twinSteps(notes)
	steps, told := int64(len(ends)), int64(-1)
	if d, ok := root.(*dict); ok {
		if h, ok := d.get("memdiag").(*dict); ok {
			steps, told = max(0, twinInt(h.get("step"), steps)), max(-1, twinInt(h.get("step"), -1))
		}
	}
	var segs []twinSegment
	for _, v := range segments {
		seg, err := twinReadSegment(v)
		if err != nil {
			return "", err
		}
		segs = append(segs, seg)
	}
	for _, v := range parts.hostSegments {
		d, ok := v.(*dict)
		if !ok {
			continue
		}
		if _, hasBlocks := d.get("blocks").(*list); !hasBlocks && !twinIsInt(d.get("total_size")) {
			continue
		}
		d.set("device", big.NewInt(-1))
		seg, err := twinReadSegment(v)
		if err != nil {
			return "", err
		}
		segs = append(segs, seg)
	}
	slices.SortStableFunc(segs, func(a, b twinSegment) int {
		return cmp.Or(cmp.Compare(uint64(a.device), uint64(b.device)), cmp.Compare(uint64(a.address), uint64(b.address)))
	})
	var out strings.Builder
	fmt.Fprintf(&out, "events %d lost %d from %d to %d steps %d\n", events, lost, first, last, steps)
	meters := map[int64]*[4]int64{}
	for _, seg := range segs {
		fmt.Fprintln(&out, seg.line)
		if meters[seg.device] == nil {
			meters[seg.device] = new([4]int64)
		}
		m := meters[seg.device]
		m[3] += seg.size
		for _, b := range seg.blocks {
			birth := int64(0)
			if t, ok := live[[2]int64{seg.device, b.address}]; ok && b.state != snapshot.Free && t[1] == b.requested && t[0] > 0 {
				birth = t[0]
			}
			if t, ok := live[[2]int64{seg.device, b.address}]; ok && b.state != snapshot.Free && t[1] == b.requested && last > 0 && t[2] >= 0 && t[2] <= told {
				b.step = t[2]
			}
			if b.step < 0 && birth > 0 && len(ends) > 0 {
				for b.step = 0; int(b.step) < len(ends) && ends[b.step] < birth; b.step++ {
				}
			}
			if b.state == snapshot.Live {
				m[0] += b.requested
				m[1] += b.size
			}
			if b.state != snapshot.Free {
				m[2] += b.size
			}
			fmt.Fprintf(&out, " %s\n", describeBlock(uint64(b.address), b.size, b.requested, b.state, birth, b.step, b.frames))
		}
	}
	for _, device := range slices.Sorted(func(yield func(int64) bool) {
		for d := range meters {
			if !yield(d) {
				return
			}
		}
	}) {
		fmt.Fprintf(&out, "device %d: %v\n", device, *meters[device])
	}
	return out.String(), nil
}

// twinStamp reads a step that the recorder stamped on an event.
func twinStamp(text string, step *int64) bool {
	_, err := fmt.Sscanf(text, `{"memdiag_step":%d}`, step)
	return err == nil && *step >= 0 && text == fmt.Sprintf(`{"memdiag_step":%d}`, *step)
}

// describe says of a snapshot what twin says of a tree.
func describe(s *snapshot.Snapshot) string {
	var out strings.Builder
	first, last := int64(0), int64(0)
	if !s.History.Last.IsZero() {
		first, last = s.History.First.UnixMicro(), s.History.Last.UnixMicro()
	}
	fmt.Fprintf(&out, "events %d lost %d from %d to %d steps %d\n", s.History.Events, s.History.LostFrees, first, last, max(0, s.Mark.Step))
	index := func(device int) int {
		if s.Devices[device].Kind == snapshot.CPU {
			return -1
		}
		return s.Devices[device].Index
	}
	used := map[int]snapshot.Meters{}
	for i, seg := range s.Segments {
		device := index(seg.Device)
		used[device] = s.Devices[seg.Device].Meters
		fmt.Fprintln(&out, describeSegment(int64(device), seg.Address, int64(seg.Size), seg.Stream, seg.Pool.String(), seg.Private, seg.Expandable, s.Stacks.Frames(seg.Stack)))
		for row := seg.FirstBlock; row < seg.FirstBlock+seg.NumBlocks; row++ {
			b := &s.Blocks
			if b.Segment[row] != int32(i) {
				fmt.Fprintf(&out, "row %d names segment %d\n", row, b.Segment[row])
			}
			birth, step := int64(0), snapshot.NoStep
			if b.BirthTime != nil {
				birth = b.BirthTime[row]
			}
			if b.BirthStep != nil {
				step = b.BirthStep[row]
			}
			fmt.Fprintf(&out, " %s\n", describeBlock(b.Address[row], int64(b.Size[row]), int64(b.Requested[row]), b.State[row], birth, step, s.Stacks.Frames(b.Stack[row])))
		}
	}
	for device := -1; device <= maxDevice; device++ {
		if m, ok := used[device]; ok {
			fmt.Fprintf(&out, "device %d: [%d %d %d %d]\n", device, int64(m.Requested), int64(m.Allocated), int64(m.Active), int64(m.Reserved))
		}
	}
	return out.String()
}

func describeSegment(device int64, address uint64, size int64, stream uint64, pool, private string, expandable bool, frames []snapshot.Frame) string {
	return fmt.Sprintf("segment %d %x+%d stream %d %s %q %v %v", device, address, size, stream, pool, private, expandable, frames)
}

func describeBlock(address uint64, size, requested int64, state snapshot.State, birth, step int64, frames []snapshot.Frame) string {
	return fmt.Sprintf("%x+%d (%d) %s born %d in %d: %v", address, size, requested, state, birth, step, frames)
}

// parts are the lists of a snapshot.
type parts struct{ segments, traces, annotations, hostSegments, hostTraces []any }

// twinParts finds the lists in the top level, or in a dict below it.
func twinParts(root any) (p parts, err error) {
	if l, ok := root.(*list); ok {
		return parts{segments: l.items}, nil
	}
	d, ok := root.(*dict)
	if !ok {
		return p, errTwin
	}
	places := []*dict{d}
	for i, v := range d.values {
		key, _ := d.keys[i].(string)
		if inner, ok := v.(*dict); ok && !slices.Contains(keywords[:], key) {
			places = append(places, inner)
		}
	}
	found := false
	for _, d := range places {
		for key, to := range map[string]*[]any{
			"segments": &p.segments, "device_traces": &p.traces, "external_annotations": &p.annotations,
			"host_segments": &p.hostSegments, "host_traces": &p.hostTraces,
		} {
			if l, ok := d.get(key).(*list); ok {
				*to = l.items
				found = found || key == "segments" || key == "device_traces"
			}
		}
	}
	if !found {
		return p, errTwin
	}
	return p, nil
}

// twinHostEvents are the entries of a list of entries, or of lists of them.
func twinHostEvents(items []any) []any {
	var out []any
	for _, v := range items {
		for _, e := range append(twinItems(v), v) {
			if d, ok := e.(*dict); ok {
				out = append(out, d)
			}
		}
	}
	return out
}

func twinItems(v any) []any {
	if l, ok := v.(*list); ok {
		return l.items
	}
	return nil
}

var two64 = new(big.Int).Lsh(big.NewInt(1), 64)

// twinIsInt reports whether v is an int of 64 bits, signed or not.
func twinIsInt(v any) bool {
	n, ok := v.(*big.Int)
	return ok && (n.IsInt64() || n.IsUint64())
}

func twinInt(v any, otherwise int64) int64 {
	if !twinIsInt(v) {
		return otherwise
	}
	n := v.(*big.Int)
	if n.IsInt64() {
		return n.Int64()
	}
	return new(big.Int).Sub(n, two64).Int64()
}

func twinFrames(v any) []snapshot.Frame {
	var all, kept []snapshot.Frame
	for _, item := range twinItems(v) {
		d, ok := item.(*dict)
		if !ok {
			return nil
		}
		name, named := d.get("name").(string)
		file, filed := d.get("filename").(string)
		if !named && !filed {
			return nil
		}
		f := snapshot.Frame{Function: name, File: file, Line: int(twinInt(d.get("line"), -1))}
		if f.File == "??" || f.File == "none" && f.Line <= 0 {
			f.File = ""
		}
		if f.Line <= 0 || f.Line >= 1<<31 {
			f.Line = -1
		}
		all = append(all, f)
		noisy := f
		noisy.File = file
		if !isNoise(noisy) {
			kept = append(kept, f)
		}
	}
	if len(kept) == 0 {
		return all
	}
	return kept
}

func twinSteps(notes []any) []int64 {
	byName := map[string][]int64{}
	for _, v := range notes {
		d, ok := v.(*dict)
		if !ok {
			continue
		}
		name, _ := d.get("name").(string)
		if t := twinInt(d.get("time_us"), 0); t > 0 && d.get("stage") == "END" {
			if strings.HasPrefix(name, "ProfilerStep#") {
				name = "ProfilerStep"
			} else if !strings.HasPrefix(name, "Optimizer.step#") {
				continue
			}
			byName[name] = append(byName[name], t)
		}
	}
	best := byName["ProfilerStep"]
	delete(byName, "ProfilerStep")
	var names []string
	for n := range byName {
		names = append(names, n)
	}
	slices.Sort(names)
	for i, n := range names {
		if i == 0 || len(byName[n]) > len(best) {
			best = byName[n]
		}
	}
	slices.Sort(best)
	return best
}

func twinReadSegment(v any) (twinSegment, error) {
	d, ok := v.(*dict)
	if !ok {
		return twinSegment{}, errTwin
	}
	seg := twinSegment{device: twinInt(d.get("device"), 0), address: twinInt(d.get("address"), 0)}
	blocks, hasBlocks := d.get("blocks").(*list)
	if !hasBlocks && !twinIsInt(d.get("total_size")) {
		return seg, errTwin
	}
	at := seg.address
	var sum int64
	if hasBlocks {
		for _, v := range blocks.items {
			b, err := twinReadBlock(v)
			if err != nil {
				return seg, err
			}
			if b.address == 0 {
				b.address = at
			}
			at += b.size
			sum += b.size
			seg.blocks = append(seg.blocks, b)
		}
	} else {
		total, frames := twinInt(d.get("total_size"), 0), twinFrames(d.get("frames"))
		allocated := twinInt(d.get("allocated_size"), 0)
		active := max(allocated, twinInt(d.get("active_size"), 0))
		requested := twinInt(d.get("requested_size"), allocated)
		if requested > allocated {
			requested = allocated
		}
		for _, b := range []twinBlock{
			{size: allocated, requested: requested, state: snapshot.Live, frames: frames},
			{size: active - allocated, requested: active - allocated, state: snapshot.Pending, frames: frames},
			{size: total - active, state: snapshot.Free},
		} {
			if b.size > 0 {
				b.address, b.step = at, -1
				at += b.size
				seg.blocks = append(seg.blocks, b)
			}
		}
	}
	slices.SortStableFunc(seg.blocks, func(a, b twinBlock) int { return cmp.Compare(uint64(a.address), uint64(b.address)) })
	seg.size = twinInt(d.get("total_size"), sum)
	pool := "large"
	if d.get("segment_type") == "small" {
		pool = "small"
	}
	var id []any
	switch v := d.get("segment_pool_id").(type) {
	case *tuple:
		id = v.items
	case *list:
		id = v.items
	}
	private := ""
	if len(id) == 2 && twinIsInt(id[0]) && twinIsInt(id[1]) {
		if a, b := uint64(twinInt(id[0], 0)), uint64(twinInt(id[1], 0)); a != 0 || b != 0 {
			private = fmt.Sprintf("%d,%d", a, b)
		}
	}
	expandable := d.get("is_expandable") == true
	if n := twinInt(d.get("is_expandable"), 0); n != 0 {
		expandable = true
	}
	seg.line = describeSegment(seg.device, uint64(seg.address), seg.size, uint64(twinInt(d.get("stream"), 0)), pool, private, expandable, twinFrames(d.get("frames")))
	return seg, nil
}

func twinReadBlock(v any) (twinBlock, error) {
	d, ok := v.(*dict)
	if !ok || !twinIsInt(d.get("size")) {
		return twinBlock{}, errTwin
	}
	b := twinBlock{address: twinInt(d.get("address"), 0), size: twinInt(d.get("size"), 0), step: max(-1, twinInt(d.get("step"), -1))}
	switch state, _ := d.get("state").(string); state {
	case "inactive":
	case "active_pending_free", "active_awaiting_free":
		b.state = snapshot.Pending
	default:
		if strings.HasPrefix(state, "active") {
			b.state = snapshot.Live
		}
	}
	history := twinItems(d.get("history"))
	for _, v := range history {
		if _, ok := v.(*dict); !ok {
			return b, errTwin
		}
	}
	if b.state == snapshot.Free {
		return b, nil
	}
	b.requested = twinInt(d.get("requested_size"), b.size)
	b.frames = twinFrames(d.get("frames"))
	if len(history) > 0 {
		h := history[0].(*dict)
		b.requested = twinInt(h.get("real_size"), b.requested)
		if len(b.frames) == 0 {
			b.frames = twinFrames(h.get("frames"))
		}
	}
	if uint64(b.requested) > uint64(b.size) {
		b.requested = b.size // not believed
	}
	return b, nil
}

// checkTwin reads b with reader and twin and compares what they say.
func checkTwin(t *testing.T, b []byte, tree func([]byte) (any, error)) {
	t.Helper()
	s, err := Decode("file", bytes.NewReader(b), int64(len(b)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	root, err := tree(b)
	if err != nil {
		t.Fatal(err)
	}
	want, err := twin(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := describe(s); got != want {
		t.Errorf("reader and twin differ\n%s", firstDifference(got, want))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d\n got: %s\nwant: %s", i, g[i], strings.Join(w[i:min(len(w), i+1)], ""))
		}
	}
	return "the reader stops early"
}

func TestReaderAgreesWithItsTwinOnRealFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedDir(t, "data", "torch"), "*.p*k*l*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			checkTwin(t, b, pickleTree)
		})
	}
}
