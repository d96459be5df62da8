package native

import (
	"time"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/snapshot"
)

// Generators of whole snapshots and series, legal but otherwise odd.

func drawTime(t *rapid.T, label string) time.Time {
	if !rapid.Bool().Draw(t, label+" known") {
		return time.Time{}
	}
	// Years 1678 to 2262, to the microsecond.
	return time.UnixMicro(rapid.Int64Range(-9_200_000_000_000_000, 9_200_000_000_000_000).Draw(t, label)).UTC()
}

func drawMark(t *rapid.T) snapshot.Mark {
	return snapshot.Mark{
		Step:           rapid.Int64Min(-1).Draw(t, "step"),
		Epoch:          rapid.Int64Min(-1).Draw(t, "epoch"),
		Phase:          rapid.SampledFrom([]string{"", "train", "eval", "\xff\x00"}).Draw(t, "phase"),
		BatchElements:  rapid.Int64().Draw(t, "batch elements"),
		SequenceLength: rapid.Int64().Draw(t, "sequence length"),
		Time:           drawTime(t, "time"),
	}
}

func drawBytes(t *rapid.T, label string) snapshot.Bytes {
	return snapshot.Bytes(rapid.Int64().Draw(t, label))
}

func drawMeters(t *rapid.T) snapshot.Meters {
	return snapshot.Meters{
		Requested: drawBytes(t, "requested"), Allocated: drawBytes(t, "allocated"), Active: drawBytes(t, "active"),
		Reserved: drawBytes(t, "reserved"), Driver: drawBytes(t, "driver"),
	}
}

func drawDevices(t *rapid.T, least int) []snapshot.Device {
	devices := make([]snapshot.Device, rapid.IntRange(least, 3).Draw(t, "devices"))
	for i := range devices {
		devices[i] = snapshot.Device{
			Kind:  rapid.SampledFrom([]snapshot.DeviceKind{snapshot.CPU, snapshot.CUDA, snapshot.Vulkan, ""}).Draw(t, "kind"),
			Index: rapid.Int().Draw(t, "index"), Name: rapid.String().Draw(t, "name"),
			Limit: drawBytes(t, "limit"), Meters: drawMeters(t),
		}
	}
	return devices
}

func drawFrames(t *rapid.T, least int) []snapshot.Frame {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) snapshot.Frame {
		return snapshot.Frame{
			Function: rapid.SampledFrom([]string{"", "forward", "main.Step", "\xfe", "a\x00b"}).Draw(t, "function"),
			File:     rapid.SampledFrom([]string{"", "train.py", "model.py"}).Draw(t, "file"),
			Line:     rapid.SampledFrom([]int{-1, 0, 7, 1<<31 - 1}).Draw(t, "line"),
		}
	}), least, 4).Draw(t, "frames")
}

func drawSnapshot(t *rapid.T) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Mark: drawMark(t), Rank: rapid.Int().Draw(t, "rank"), Producer: rapid.String().Draw(t, "producer"),
		Devices: drawDevices(t, 0), Stacks: snapshot.NewStacks(),
		History: snapshot.History{
			Events: rapid.Int64().Draw(t, "events"), First: drawTime(t, "first"), Last: drawTime(t, "last"),
			LostFrees: rapid.Int64().Draw(t, "lost frees"), Process: rapid.SampledFrom([]string{"", "4242", "\xff"}).Draw(t, "process"),
		},
		SamplePeriod: rapid.SampledFrom([]snapshot.Bytes{0, 1 << 19, -1}).Draw(t, "sample period"),
		Notes:        rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "notes"),
	}
	for range rapid.IntRange(0, 4).Draw(t, "stacks") {
		s.Stacks.InternFrames(drawFrames(t, 1))
	}
	stack := func(t *rapid.T) snapshot.StackID {
		return snapshot.StackID(rapid.IntRange(0, s.Stacks.Len()-1).Draw(t, "stack"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "holders") {
		s.Holders = append(s.Holders, snapshot.Holder{
			Stack: stack(t), Path: rapid.String().Draw(t, "path"), Kind: "list", Items: rapid.Int().Draw(t, "items"),
		})
	}
	b := &s.Blocks
	if len(s.Devices) > 0 {
		for i := range rapid.IntRange(0, 4).Draw(t, "segments") {
			g := snapshot.Segment{
				Device:  rapid.IntRange(0, len(s.Devices)-1).Draw(t, "device"),
				Address: rapid.Uint64().Draw(t, "address"), Size: drawBytes(t, "segment size"),
				Stream: rapid.Uint64().Draw(t, "stream"),
				Pool:   snapshot.Pool(rapid.IntRange(0, 1).Draw(t, "pool")), Private: rapid.String().Draw(t, "private"),
				Expandable: rapid.Bool().Draw(t, "expandable"), Stack: stack(t),
				FirstBlock: b.Len(), NumBlocks: rapid.IntRange(0, 4).Draw(t, "blocks"),
			}
			for range g.NumBlocks {
				b.Segment = append(b.Segment, int32(i))
				b.Address = append(b.Address, rapid.Uint64().Draw(t, "address"))
				b.Size = append(b.Size, drawBytes(t, "size"))
				b.Requested = append(b.Requested, min(drawBytes(t, "requested"), b.Size[len(b.Size)-1]))
				b.State = append(b.State, snapshot.State(rapid.IntRange(0, 2).Draw(t, "state")))
				b.Stack = append(b.Stack, stack(t))
			}
			s.Segments = append(s.Segments, g)
		}
	}
	n := b.Len()
	if rapid.Bool().Draw(t, "has birth steps") {
		b.BirthStep = rapid.SliceOfN(rapid.Int64(), n, n).Draw(t, "birth steps")
	}
	if rapid.Bool().Draw(t, "has birth times") {
		b.BirthTime = rapid.SliceOfN(rapid.Int64(), n, n).Draw(t, "birth times")
	}
	if rapid.Bool().Draw(t, "has birth events") {
		b.BirthEvent = rapid.SliceOfN(rapid.Int64(), n, n).Draw(t, "birth events")
	}
	if rapid.Bool().Draw(t, "has owners") {
		b.Owners = make([]snapshot.Owners, n)
		for i := range b.Owners {
			b.Owners[i] = snapshot.Owners(rapid.Byte().Draw(t, "owners"))
		}
	}
	if rapid.Bool().Draw(t, "has categories") {
		b.Category = make([]snapshot.Category, n)
		for i := range b.Category {
			b.Category[i] = snapshot.Category(rapid.IntRange(0, snapshot.Categories-1).Draw(t, "category"))
		}
	}
	if rapid.Bool().Draw(t, "tells totals") {
		b.Count = rapid.SliceOfN(rapid.Int64(), n, n).Draw(t, "counts")
	}
	s.Mark.StepCounted = rapid.Bool().Draw(t, "step counted")
	return s
}

// drawSeries draws a series as the model says one is: sites differ, are named
// from some point on, and are listed in a point only if they hold something.
func drawSeries(t *rapid.T) *snapshot.Series {
	s := &snapshot.Series{Devices: drawDevices(t, 1), Stacks: snapshot.NewStacks()}
	seen := make(map[snapshot.SeriesSite]bool)
	for range rapid.IntRange(0, 6).Draw(t, "points") {
		for range rapid.IntRange(0, 2).Draw(t, "new sites") {
			site := snapshot.SeriesSite{
				Device: rapid.IntRange(0, len(s.Devices)-1).Draw(t, "device"),
				Stack:  s.Stacks.InternFrames(drawFrames(t, 0)),
			}
			if !seen[site] {
				seen[site] = true
				s.Sites = append(s.Sites, site)
			}
		}
		p := snapshot.Point{Mark: drawMark(t)}
		for d := range s.Devices {
			s.Devices[d].Meters = drawMeters(t)
			p.Meters = append(p.Meters, s.Devices[d].Meters)
		}
		for id := range s.Sites {
			c := snapshot.SiteCount{Site: int32(id), Count: rapid.Int64().Draw(t, "count"), Bytes: drawBytes(t, "bytes")}
			if rapid.Bool().Draw(t, "holds") && (c.Count != 0 || c.Bytes != 0) {
				p.Sites = append(p.Sites, c)
			}
		}
		s.Points = append(s.Points, p)
	}
	return s
}
