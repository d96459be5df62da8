// Command ranks writes a run of many ranks for measurements: five snapshots of each, or as many as a third argument says. The
// training has 200 steps and 40 call sites; one of these leaks on every tenth rank.
//
//	go run ./bench/ranks DIR 1000 32
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ranks:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 || len(args) > 3 {
		return fmt.Errorf("ranks DIR NUMBER [SNAPSHOTS]")
	}
	numbers := []int{0, 5}
	for i, arg := range args[1:] {
		n, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		numbers[i] = n
	}
	ranks, steps := numbers[0], int64(200)
	if int64(numbers[1]) > steps+1 {
		return fmt.Errorf("%d snapshots of %d steps: at most %d", numbers[1], steps, steps+1)
	}
	between := steps / int64(max(1, numbers[1]-1))
	dir := args[0]
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ended, code := began.Add(time.Hour), 0
	text, err := json.Marshal(snapshot.Info{
		SchemaVersion: rundir.SchemaVersion, Command: []string{"torchrun", "train.py"}, Steps: steps, Started: began, Finished: &ended, ExitCode: &code, Version: "bench/ranks",
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, rundir.InfoName), text, 0o666); err != nil {
		return err
	}
	for rank := range ranks {
		for step := int64(0); step <= between*int64(numbers[1]-1); step += between {
			if err := write(filepath.Join(dir, rundir.RankSnapshotName(step, rank)), at(step, rank, began)); err != nil {
				return err
			}
		}
	}
	return nil
}

func write(path string, s *snapshot.Snapshot) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := native.Encode(f, s); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// at is the state of a rank after so many steps.
func at(step int64, rank int, began time.Time) *snapshot.Snapshot {
	const sites, blocks, size = 40, 12, 64 * snapshot.KiB
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: step, Epoch: 0, Phase: "train", Time: began.Add(time.Duration(step) * time.Second)},
		Rank: rank, Producer: "PyTorch 2.15.0", Stacks: snapshot.NewStacks(),
		Devices: []snapshot.Device{{Kind: snapshot.CUDA, Index: rank % 8, Name: "H200", Limit: 80 * snapshot.GiB}},
	}
	s.Blocks.BirthStep = []int64{}
	address := uint64(0x7f0000000000)
	block := func(stack snapshot.StackID, born int64) {
		b := &s.Blocks
		b.Segment, b.Address, b.Size = append(b.Segment, 0), append(b.Address, address), append(b.Size, size)
		b.Requested, b.State, b.Stack = append(b.Requested, size), append(b.State, snapshot.Live), append(b.Stack, stack)
		b.BirthStep = append(b.BirthStep, born)
		address += uint64(size)
	}
	for i := range sites {
		stack := s.Stacks.InternFrames([]snapshot.Frame{
			{Function: "linear", File: "/venv/lib/python3.11/site-packages/torch/nn/functional.py", Line: 2000 + i},
			{Function: "forward", File: "/home/me/model.py", Line: 10 + i},
			{Function: "main", File: "/home/me/train.py", Line: 7},
		})
		for range blocks {
			block(stack, 0)
		}
	}
	if rank%10 == 0 {
		leak := s.Stacks.InternFrames([]snapshot.Frame{{Function: "update", File: "/home/me/metrics.py", Line: 31}, {Function: "main", File: "/home/me/train.py", Line: 9}})
		for born := range step {
			block(leak, born+1)
		}
	}
	held := snapshot.Bytes(address - 0x7f0000000000)
	reserved := (held + 2*snapshot.MiB - 1) / (2 * snapshot.MiB) * (2 * snapshot.MiB)
	if rest := reserved - held; rest > 0 {
		block(snapshot.NoStack, snapshot.NoStep)
		last := s.Blocks.Len() - 1
		s.Blocks.Size[last], s.Blocks.Requested[last], s.Blocks.State[last] = rest, 0, snapshot.Free
	}
	s.Segments = []snapshot.Segment{{Address: 0x7f0000000000, Size: reserved, NumBlocks: s.Blocks.Len()}}
	s.Devices[0].Meters = snapshot.Meters{Requested: held, Allocated: held, Active: held, Reserved: reserved, Driver: reserved + 300*snapshot.MiB}
	return s
}
