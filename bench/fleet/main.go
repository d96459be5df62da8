// Command fleet makes fleets whose truth is known, for measurements.
//
//	go run ./bench/fleet rows DIR 10000000   a fleet with so many rows of findings; prints what is true of it
//	go run ./bench/fleet outliers 1000       the test of ranks on so many simulated runs of each kind
package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/memdiag/memdiag/fleet"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 3 && args[0] == "rows" {
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return rows(args[1], n)
	}
	if len(args) == 2 && args[0] == "outliers" {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		outliers(n)
		return nil
	}
	return fmt.Errorf("fleet rows DIR NUMBER | fleet outliers NUMBER")
}

// Of each run that rows makes.
const (
	ranks     = 1000
	findings  = 5    // of each rank
	places    = 2000 // fingerprints in all
	perWeek   = 40   // runs
	leakEvery = 4    // every fourth fingerprint leaks
)

// rows makes runs of 1,000 ranks with five findings each. A fingerprint leaks in all of its findings
// or in none.
func rows(dir string, n int) error {
	random := rand.New(rand.NewPCG(1, 2))
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	leaking := make(map[int]bool)
	rows := 0
	for i := 0; rows < n; i++ {
		t := fleet.NewTables()
		id := fmt.Sprintf("%016x", i+1)
		started := began.Add(time.Duration(i) * 7 * 24 * time.Hour / perWeek)
		leaks, growth := 0, int64(0)
		var prints [findings]int
		for k := range prints {
			prints[k] = random.IntN(places)
		}
		for rank := range ranks {
			for _, print := range prints {
				verdict, rate, grown := "bounded", 0., int64(random.IntN(1<<20))
				if print%leakEvery == 0 {
					verdict, rate = "leak", float64(1+print)*(1+0.1*random.NormFloat64())
					grown = int64(rate * 1000)
					leaks++
					growth += grown
					leaking[print] = true
				}
				t["findings"].Append(id, rank, fmt.Sprintf("s1-%016x", print), fmt.Sprintf("%016x", print), "cuda:0", fmt.Sprintf("/home/me/model_%d.py:%d", print%50, print), "",
					verdict, "strong", "step", rate, rate*0.9, rate*1.1, rate/2, grown, 1000, grown, "", -1, time.Time{})
			}
			rows += findings
			slope := 1000 + 10*random.NormFloat64()
			t["ranks"].Append(id, rank, fmt.Sprintf("node%d", rank/8), "cuda:0", -1, -1, "leak", 1, 5, 0, 1000, 1<<30, 1000, 1<<30, 1<<30, 80<<30, slope, slope/2, -1, time.Time{})
		}
		t["runs"].Append(id, fmt.Sprintf("run-%d", i), "/runs/"+id, started.Add(3*time.Hour), started, started.Add(2*time.Hour), "ended", 0, "torchrun train.py", "", fmt.Sprintf("%040x", i/10), "PyTorch 2.15.0", "bench/fleet",
			ranks, ranks/8, ranks, 1000, 7200., "leak", leaks, 1<<40, growth)
		if _, err := fleet.Add(dir, t); err != nil {
			return err
		}
	}
	s, err := fleet.OpenStore(dir)
	if err != nil {
		return err
	}
	fmt.Printf("%d runs, %d rows of findings, %d fingerprints leak; %.1f bytes a row of findings, all tables\n", len(s.Runs()), rows, len(leaking), float64(s.Bytes())/float64(rows))
	return nil
}

// kind is what leaks in a simulated run.
type kind struct {
	name  string
	leaks func(r fleet.Rank, which int64) bool
	of    func(which int64) string // the group that is to be named
}

var kinds = []kind{
	{"none", func(fleet.Rank, int64) bool { return false }, nil},
	{"rank", func(r fleet.Rank, w int64) bool { return r.Rank == w }, func(w int64) string { return fmt.Sprintf("rank %d", w) }},
	{"stage", func(r fleet.Rank, w int64) bool { return r.Stage == w%4 }, func(w int64) string { return fmt.Sprintf("stage %d", w%4) }},
	{"host", func(r fleet.Rank, w int64) bool { return r.Host == fmt.Sprint("node", w/8) }, func(w int64) string { return fmt.Sprintf("host node%d", w/8) }},
}

// outliers counts for each kind of leak, each size of run and each strength how often the group is
// named, and how often another.
func outliers(n int) {
	fmt.Println("ranks  noise    leak  what leaks  right  part  wrong  nothing   of", n)
	for _, size := range []int{16, 64, 512} {
		for _, tails := range []string{"normal", "heavy"} {
			for _, strength := range []float64{5, 10, 30} {
				for _, k := range kinds {
					if k.name == "none" && strength != 5 {
						continue
					}
					right, part, wrong, nothing := simulate(n, size, tails == "heavy", strength, k)
					fmt.Printf("%5d  %-6s  %4.0fx  %-10s  %5d  %4d  %5d  %7d\n", size, tails, strength, k.name, right, part, wrong, nothing)
				}
			}
		}
	}
}

// simulate draws slopes with noise of a standard deviation of 1, and a leak of so many.
func simulate(n, size int, heavy bool, strength float64, k kind) (right, part, wrong, nothing int) {
	random := rand.New(rand.NewPCG(uint64(size), uint64(strength)))
	mesh := fleet.Mesh{{Name: "pp", Length: 4}, {Name: "dp", Length: size / 8}, {Name: "tp", Length: 2}}
	for range n {
		which := random.Int64N(int64(size))
		list := make([]fleet.Rank, size)
		for i := range list {
			stage, replica := mesh.Of(i)
			noise := random.NormFloat64()
			if heavy { // Student's t with 4 degrees of freedom
				chi := 0.
				for range 4 {
					z := random.NormFloat64()
					chi += z * z
				}
				noise /= math.Sqrt(chi / 4)
			}
			list[i] = fleet.Rank{Rank: int64(i), Host: fmt.Sprint("node", i/8), Stage: int64(stage), Replica: int64(replica), Slope: 1000 * noise}
			if k.leaks(list[i], which) {
				list[i].Slope += 1000 * strength
			}
		}
		groups := fleet.Unlike(list)
		switch {
		case len(groups) == 0:
			nothing++
		case k.of == nil:
			wrong++
		case groups[0].Name == k.of(which) && len(groups) == 1:
			right++
		case groups[0].Name == k.of(which):
			part++ // and something else
		default:
			wrong++
		}
	}
	return right, part, wrong, nothing
}
