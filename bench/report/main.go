// Command report writes a long run of many sites, for bench/report.sh to time
// memdiag on: one snapshot a file, every site live in all of them, one site in a
// thousand leaking a block a snapshot.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
)

func main() {
	snapshots := flag.Int("snapshots", 200, "how many")
	sites := flag.Int("sites", 20_000, "stacks, each of 20 frames")
	out := flag.String("out", "", "folder to write into")
	flag.Parse()
	if err := write(*out, *snapshots, *sites); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir string, snapshots, sites int) error {
	stacks := snapshot.NewStacks()
	ids := make([]snapshot.StackID, sites)
	for i := range ids {
		frames := make([]snapshot.Frame, 20)
		for d := range frames {
			frames[d] = snapshot.Frame{Function: fmt.Sprintf("f%d", i>>d), File: fmt.Sprintf("model/m%d.py", (i>>d)%500), Line: d + 1}
		}
		ids[i] = stacks.InternFrames(frames)
	}
	for at := range snapshots {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("snapshot_%d%s", at*10, native.Ending)))
		if err != nil {
			return err
		}
		err = native.Encode(file, one(stacks, ids, at))
		if closed := file.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// one is the snapshot of one mark.
func one(stacks *snapshot.Stacks, ids []snapshot.StackID, at int) *snapshot.Snapshot {
	const base, size = 0x7f0000000000, 512
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: int64(at) * 10, Phase: "train", Time: time.Date(2026, 1, 2, 3, at/60, at%60, 0, time.UTC)},
		Rank: snapshot.NoRank, Producer: "bench/report", Stacks: stacks,
	}
	b := &s.Blocks
	b.BirthStep = []int64{}
	address := uint64(base)
	block := func(stack snapshot.StackID, born int64) {
		b.Segment, b.Address, b.Size, b.Requested = append(b.Segment, 0), append(b.Address, address), append(b.Size, size), append(b.Requested, size)
		b.State, b.Stack, b.BirthStep = append(b.State, snapshot.Live), append(b.Stack, stack), append(b.BirthStep, born)
		address += size
	}
	for _, id := range ids {
		block(id, 0)
	}
	for born := 1; born <= at; born++ {
		for i := 0; i < len(ids); i += 1000 {
			block(ids[i], int64(born)*10)
		}
	}
	held := snapshot.Bytes(address - base)
	s.Segments = []snapshot.Segment{{Address: base, Size: held, NumBlocks: b.Len()}}
	m := snapshot.Meters{Requested: held, Allocated: held, Active: held, Reserved: held, Driver: held + snapshot.MiB}
	s.Devices = []snapshot.Device{{Kind: snapshot.CUDA, Limit: snapshot.GiB, Meters: m}}
	return s
}
