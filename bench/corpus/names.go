package corpus

import (
	"hash/fnv"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// nameless replaces the words that a program chose, but for what a framework calls
// for by name, with words that mean nothing.
func nameless(name string) string {
	return regexp.MustCompile(`[A-Za-z]+`).ReplaceAllStringFunc(name, func(w string) string {
		switch strings.ToLower(w) {
		case "forward", "backward", "step", "func", "workload":
			return w
		}
		h := fnv.New32()
		h.Write([]byte(w))
		return "q" + strconv.Itoa(int(h.Sum32()%1e6)) + "z"
	})
}

// hiddenFile is the name of a workload's file without the words of it.
func hiddenFile(file string) string {
	return "engine/workload/" + nameless(strings.TrimSuffix(path.Base(file), ".go")) + ".go"
}

// namelessStacks are the stacks with the names of workloads replaced, and the new id
// of each.
func namelessStacks(old *snapshot.Stacks) (*snapshot.Stacks, []snapshot.StackID) {
	s := snapshot.NewStacks()
	ids := make([]snapshot.StackID, old.Len())
	for i := range ids {
		frames := old.Frames(snapshot.StackID(i))
		for k := range frames {
			if f := &frames[k]; strings.HasPrefix(f.File, "engine/workload/") {
				f.Function = nameless(f.Function)
				f.File = hiddenFile(f.File)
			}
		}
		ids[i] = s.InternFrames(frames)
	}
	return s, ids
}

// HideNames replaces the names that a workload chose in its run: files, functions and
// holders.
func HideNames(run *snapshot.Run, _ *rand.Rand) {
	var ids []snapshot.StackID
	for _, s := range run.Snapshots {
		s.Stacks, ids = namelessStacks(s.Stacks)
		for i, id := range s.Blocks.Stack {
			s.Blocks.Stack[i] = ids[id]
		}
		for i := range s.Segments {
			s.Segments[i].Stack = ids[s.Segments[i].Stack]
		}
		for i := range s.Holders {
			s.Holders[i].Stack, s.Holders[i].Path = ids[s.Holders[i].Stack], nameless(s.Holders[i].Path)
		}
	}
	run.Info.Bounds = slices.Clone(run.Info.Bounds)
	for i := range run.Info.Bounds {
		run.Info.Bounds[i].Where = nameless(run.Info.Bounds[i].Where)
	}
	if run.Series == nil {
		return
	}
	run.Series.Stacks, ids = namelessStacks(run.Series.Stacks)
	for i := range run.Series.Sites {
		run.Series.Sites[i].Stack = ids[run.Series.Sites[i].Stack]
	}
}
