package files

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/processes"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// Folder is the folder of a run that was looked through once. Each of its ranks is read from it
// without looking at the files of the others.
type Folder struct {
	path    string
	opener  Opener
	names   *namePatterns
	own     bool         // it is a run of ours
	about   snapshot.Run // the content of run.json
	list    listing
	ranks   []int // ranks in names of snapshots, ascending
	ruined  []int // in names; no snapshot of these can be read
	ofRank  map[int][]string
	afterOf map[int][]string // snapshots from after the last step
	looked  bool             // at the files that name no rank
	without []string         // snapshots without a rank in the name, if others have one
	nodes   []*Folder        // of a run on several machines, one each; nil of others
	// unranked: the files have no rank, so each machine's index is its rank.
	unranked bool
}

// LookThrough looks through the folder of a run, and at one snapshot of each rank.
func (o Opener) LookThrough(path string) (*Folder, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &InputError{Reason: path + ": a file, not a run", hint: "name the folder of a run"}
	}
	f := &Folder{path: path, opener: o, names: newNamePatterns(), about: snapshot.Run{Path: path}, ofRank: make(map[int][]string), afterOf: make(map[int][]string)}
	if f.own, err = readInfo(&f.about, rundir.InfoName); err != nil {
		return nil, err
	}
	if !f.own && recorded(path) {
		f.own, f.about.Partial = true, true
		f.about.Notes = append(f.about.Notes, filepath.Join(path, rundir.InfoName)+": it is gone; what else the run has is read")
	}
	if f.list, err = listFiles(path, f.own, f.names); err != nil {
		return nil, err
	}
	if !f.own {
		if f.nodes = o.nodesBelow(path, f.list); f.nodes != nil {
			for n, node := range f.nodes {
				if f.unranked = len(node.ranks) == 0; f.unranked {
					f.ranks = append(f.ranks, n)
				}
				f.ranks = append(f.ranks, node.ranks...)
			}
			slices.Sort(f.ranks)
			return f, nil
		}
	}
	for _, name := range f.list.beside {
		if rundir.AfterOf(name) > 0 {
			rank := rundir.RankOf(name)
			f.afterOf[rank] = append(f.afterOf[rank], name)
		}
	}
	for _, name := range f.list.files {
		_, rank := f.names.read(filepath.ToSlash(name))
		f.ofRank[rank] = append(f.ofRank[rank], name)
	}
	f.lookAtRanks()
	return f, nil
}

// lookAtRanks finds the ranks with a readable snapshot, and those whose snapshots are all ruined.
func (f *Folder) lookAtRanks() {
	ranks := slices.DeleteFunc(slices.Sorted(maps.Keys(f.ofRank)), func(rank int) bool { return rank == snapshot.NoRank })
	known, lost := make([]bool, len(ranks)), make([]bool, len(ranks))
	fewAtOnce(len(ranks), func(i int) {
		for _, name := range f.ofRank[ranks[i]] {
			is, was := lookAt(filepath.Join(f.path, name))
			known[i], lost[i] = is, lost[i] || was
			if is {
				break
			}
		}
	})
	for i, rank := range ranks {
		switch {
		case known[i]:
			f.ranks = append(f.ranks, rank)
		case lost[i]:
			f.ruined = append(f.ruined, rank)
		}
	}
}

// recorded reports whether a folder without run.json is from a recorded command: it has a table of the command's processes, or
// snapshots of a child process. Without this check such a folder would be ignored silently.
func recorded(path string) bool {
	entries, _ := os.ReadDir(path) // what cannot be read is said by who lists the files
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		name := e.Name()
		switch stem, ending, _ := strings.Cut(name, "."); {
		case rundir.ChildOf(name) > 0 && rundir.IsRecordedSnapshot(name):
			return true
		case ending == "csv" && (strings.HasPrefix(stem, "host") || strings.HasPrefix(stem, "processes")):
			return isTable(filepath.Join(path, name))
		}
		return false
	})
}

// isTable reports whether a file begins as a table of processes.
func isTable(path string) bool {
	f, _, err := openRegular(path)
	if err != nil {
		return false
	}
	head := make([]byte, len("time_us,p"))
	_, err = io.ReadFull(f, head)
	_ = f.Close()
	return err == nil && processes.Detect(head)
}

// unnamed reports whether a run was recorded, according to other files or its snapshots, but run.json does not say of what. Snapshots
// that a program wrote itself are no such run, nor are profiles of a URL.
func unnamed(run *snapshot.Run, own bool, rank int) bool {
	if run.Info.Workload != "" || run.Info.Command != nil {
		return false
	}
	there := func(name string) bool {
		return isRegular(filepath.Join(run.Path, name+".csv")) || isRegular(filepath.Join(run.Path, rundir.TableName(name, rank)))
	}
	return own && run.Info.SchemaVersion == 0 || there("host") || there("processes") ||
		slices.ContainsFunc(run.Snapshots, func(s *snapshot.Snapshot) bool { return s.PID != 0 || strings.HasPrefix(s.Producer, "memdiag ") })
}

// Ranks are the ranks in names of snapshots, ascending; nil if there are none.
func (f *Folder) Ranks() []int { return slices.Clone(f.ranks) }

// Ruined are the ranks in names of snapshots of which none can be read, ascending.
func (f *Folder) Ruined() []int {
	ruined := slices.Clone(f.ruined)
	for _, node := range f.nodes {
		ruined = append(ruined, node.ruined...)
	}
	slices.Sort(ruined)
	return ruined
}

// OpenRank reads one rank, or with NoRank the lowest, as the function of that name does.
func (f *Folder) OpenRank(rank int) (*snapshot.Run, error) {
	if f.nodes != nil {
		return f.openNode(rank)
	}
	run := f.about
	run.Files, run.Notes = slices.Clone(run.Files), slices.Clone(run.Notes)
	r := &runReader{run: &run, opener: f.opener, into: f.opener.newShared(), names: f.names}
	if err := r.choose(rank, f); err != nil {
		return nil, err
	}
	if f.own {
		f.readSeries(&run, r.rank)
		f.readLosses(&run, r.rank)
		f.readPeaks(&run, r.rank)
		if name := rundir.RankInfoName(r.rank); f.list.others[name] && isRegular(filepath.Join(f.path, name)) {
			run.Info = snapshot.Info{}
			if _, err := readInfo(&run, name); err != nil {
				return nil, err
			}
		}
	}
	if err := r.read(f); err != nil {
		return nil, err
	}
	if f.own {
		f.readTree(&run, r.rank)
	}
	run.Unnamed = unnamed(&run, f.own, r.rank)
	if f.own && f.bringsTree(&run, r.rank) {
		f.readChildren(&run)
	}
	if f.own {
		f.readAfter(&run, r.rank)
	}
	if len(run.Snapshots) == 0 && run.Series == nil {
		return nil, r.nothing(f.list)
	}
	return &run, nil
}

// rankless are the snapshots that name no rank, beside those of several.
func (f *Folder) rankless() []string {
	if !f.looked {
		f.looked = true
		for _, name := range f.ofRank[snapshot.NoRank] {
			if known, _ := lookAt(filepath.Join(f.path, name)); known {
				f.without = append(f.without, name)
			}
		}
	}
	return f.without
}
