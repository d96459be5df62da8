package files

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// runBelow is a run's folder, and when it began or, for one that is not ours,
// was last written to.
type runBelow struct {
	path  string
	began time.Time
	ours  bool
}

// newestRun is the newest run of ours below a folder, else the newest folder of
// snapshots.
func newestRun(dir string) (string, bool) {
	runs := runsBelow(dir)
	if run, ok := newest(ofOurs(runs)); ok {
		return run, true
	}
	return newest(runs)
}

// newest is the newest of several runs. Of runs with equal times it takes the last by name, so that the choice is stable.
func newest(runs []runBelow) (string, bool) {
	if len(runs) == 0 {
		return "", false
	}
	last := slices.MaxFunc(runs, func(a, b runBelow) int {
		if c := a.began.Compare(b.began); c != 0 {
			return c
		}
		return compareNames(a.path, b.path)
	})
	return last.path, true
}

// ofOurs are those among runs that are ours.
func ofOurs(runs []runBelow) []runBelow {
	return slices.DeleteFunc(slices.Clone(runs), func(r runBelow) bool { return !r.ours })
}

// runsBelow lists the runs below a folder. The folder itself is included if its snapshots are in one folder per step. Our own runs come
// first, by name, then folders with at least two snapshots, which can be compared.
func runsBelow(dir string) []runBelow {
	list, err := listFiles(dir, false, newNamePatterns())
	if err != nil {
		return nil // a folder that can not be listed has no runs to offer
	}
	var runs []runBelow
	for _, name := range list.runs {
		run := snapshot.Run{Path: filepath.Join(dir, name)}
		// An incomplete run.json has no time; the folder's own is used.
		if _, err := readInfo(&run, rundir.InfoName); err != nil || run.Info.Started.IsZero() {
			run.Info.Started = modified(run.Path)
		}
		runs = append(runs, runBelow{run.Path, run.Info.Started, true})
	}
	for _, name := range foldersOfSnapshots(dir, list.files) {
		path := filepath.Join(dir, name)
		runs = append(runs, runBelow{path, modified(path), false})
	}
	return runs
}

// maxLooked is how many files of a folder are looked into before it is believed
// to be of another kind.
const maxLooked = 50

// foldersOfSnapshots are the folders in which two of the files below dir are
// snapshots, by name. Of a folder that its name gives a step, the one above is
// meant. Files that lie in dir itself do not count.
func foldersOfSnapshots(dir string, files []string) []string {
	names := newNamePatterns()
	looked, known := make(map[string]int), make(map[string]int)
	var folders []string
	for _, name := range files {
		folder := filepath.Dir(name)
		if folder == "." {
			continue
		}
		if names.stepFolder.MatchString(filepath.Base(folder)) {
			folder = filepath.Dir(folder)
		}
		if known[folder] == 2 || looked[folder] == maxLooked {
			continue
		}
		looked[folder]++
		if isKnown(filepath.Join(dir, name)) {
			if known[folder]++; known[folder] == 2 {
				folders = append(folders, folder)
			}
		}
	}
	return folders
}

// isKnown reports whether a file's format is read.
func isKnown(path string) bool {
	known, _ := lookAt(path)
	return known
}

// lookAt reports whether a file has a format that is read, or is a snapshot that is lost.
func lookAt(path string) (known, lost bool) {
	f, err := openFile(path)
	if err != nil {
		return false, true
	}
	defer f.close()
	return f.format != nil, f.format == nil && f.isRuined()
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Names lists what Resolve finds without a folder: the stems of the snapshots in dir, else of those in the newest run below it.
func Names(dir string) []string {
	in := snapshotsIn(dir)
	if len(in.names) == 0 {
		if below, ok := newestRun(dir); ok {
			in = snapshotsIn(below)
		}
	}
	return in.stems()
}

// Runs lists the folders of the runs below dir, seen from it.
func Runs(dir string) []string {
	var list []string
	for _, r := range runsBelow(dir) {
		if name, err := filepath.Rel(dir, r.path); err == nil {
			list = append(list, name)
		}
	}
	return list
}

// isSnapshotOf reports whether a file of a folder may be a snapshot. A run of ours may also contain results, and those in pprof look
// like snapshots. What was recorded beside a process, or after its last step, has its own snapshots.
func isSnapshotOf(ours bool, name string) bool {
	return rundir.ChildOf(name) == 0 && rundir.AfterOf(name) == 0 && (!ours || rundir.IsSnapshotName(name))
}

// isBeside reports whether the name is for a snapshot of a process beside a rank's, or from after the last step.
func isBeside(name string) bool {
	return (rundir.ChildOf(name) > 0 || rundir.AfterOf(name) > 0) && rundir.IsRecordedSnapshot(name)
}
