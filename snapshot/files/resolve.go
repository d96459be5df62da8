package files

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/memdiag/memdiag/snapshot/rundir"
)

// Resolve finds the file of a snapshot. name is a path relative to dir, or a name without its ending, such as snapshot_50, of a
// snapshot in dir, else in the newest run below dir. With folders in it, such as runs/a/snapshot_50, only that folder is searched. If
// it is missing or ambiguous, the error is an *InputError that lists what there is.
func Resolve(name, dir string) (path string, err error) {
	if name == "" {
		return "", &InputError{Reason: "a snapshot without a name", hint: snapshotsIn(dir).list()}
	}
	full, err := fullName(name, dir)
	if err != nil {
		return "", err
	}
	if isRegular(full) {
		return full, nil
	}
	if err := neither(name, full); err != nil {
		return "", err
	}
	folder, base := filepath.Split(full)
	in := snapshotsIn(filepath.Clean(folder))
	if path, err := in.find(base); path != "" || err != nil {
		return path, err
	}
	if isDir(full) {
		return "", aFolder(name, snapshotsIn(full))
	}
	if base == name { // no folder was named
		if run, ok := newestRun(dir); ok {
			below := snapshotsIn(run)
			if path, err := below.find(base); path != "" || err != nil {
				return path, err
			}
			return "", notThere(fmt.Sprintf("%s: no such snapshot here or in the newest run, %s", name, run), below.list())
		}
	}
	return "", notThere(name+": no such snapshot", in.list())
}

// aFolder is the error for a folder given instead of a snapshot.
func aFolder(name string, f folder) error {
	e := &InputError{Reason: name + ": a folder, not a snapshot", hint: "name a file in it, or a run's snapshot such as snapshot_50"}
	if len(f.names) > 0 {
		e.hint = fmt.Sprintf("memdiag diff %s compares its snapshots; one of them is %s", name, filepath.Join(name, f.names[len(f.names)-1]))
	}
	return e
}

// folder is the snapshot files that lie directly in one.
type folder struct {
	path  string
	names []string
	other []string // regular files of no known format
}

func snapshotsIn(path string) folder {
	f := folder{path: path}
	entries, err := os.ReadDir(path)
	if err != nil {
		return f // a missing folder has no snapshots
	}
	ours := isRegular(filepath.Join(path, rundir.InfoName))
	for _, e := range entries {
		switch path := filepath.Join(path, e.Name()); {
		case !isSnapshotOf(ours, e.Name()):
		case isKnown(path):
			f.names = append(f.names, e.Name())
		case regular(e, path):
			f.other = append(f.other, e.Name())
		}
	}
	slices.SortFunc(f.names, compareNames)
	return f
}

// find returns the path of the snapshot with this stem or name, or "".
func (f folder) find(base string) (string, error) {
	var found []string
	for _, n := range f.names {
		if n == base || stem(n) == base {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return filepath.Join(f.path, found[0]), nil
	}
	return "", &InputError{
		Reason: fmt.Sprintf("%s: %d snapshots of that name in %s", base, len(found), f.path),
		hint:   "name one of " + some(found),
	}
}

// list is a hint with what could have been named.
func (f folder) list() string {
	if len(f.names) == 0 {
		return "memdiag record -- COMMAND makes a run of snapshots"
	}
	return fmt.Sprintf("%s has %s", f.path, some(f.stems()))
}

func (f folder) stems() []string {
	list := make([]string, len(f.names))
	for i, n := range f.names {
		list[i] = stem(n)
	}
	return slices.Compact(list)
}

// fullName is a path relative to dir, or an absolute one as it is.
func fullName(name, dir string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	full := filepath.Join(dir, name)
	if name == "-" && !isRegular(full) {
		return "", &InputError{Reason: "-: memdiag reads files, not standard input", hint: "save the snapshot to a file first"}
	}
	return full, nil
}

// ResolveRun finds the folder of a run. name is a path relative to dir, or the name of a run folder somewhere below dir. "" means dir
// itself if it is a run of ours, else the newest of ours below it, else dir if it has snapshots, else the newest folder of snapshots
// below it.
func ResolveRun(name, dir string) (path string, err error) {
	if name == "" {
		if isRegular(filepath.Join(dir, rundir.InfoName)) {
			return dir, nil
		}
		runs := runsBelow(dir)
		if run, ok := newest(ofOurs(runs)); ok {
			return run, nil
		}
		if len(snapshotsIn(dir).names) > 0 {
			return dir, nil
		}
		if run, ok := newest(runs); ok {
			return run, nil
		}
		return "", notThere("no run here or below", "name a folder of snapshots, or make a run: memdiag demo")
	}
	full, err := fullName(name, dir)
	if err != nil {
		return "", err
	}
	if isDir(full) {
		return full, nil
	}
	if err := neither(name, full); err != nil {
		return "", err
	}
	runs := runsBelow(dir)
	var found, names []string
	for _, r := range runs {
		names = append(names, r.path)
		if filepath.Base(r.path) == name {
			found = append(found, r.path)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", &InputError{Reason: fmt.Sprintf("%s: %d runs of that name", name, len(found)), hint: "name one of " + some(found)}
	case isRegular(full):
		return "", &InputError{Reason: name + ": a file, not a run", hint: "name the folder of a run"}
	case len(names) > 0:
		return "", notThere(name+": no such run", "the runs here: "+some(names))
	}
	return "", notThere(name+": no such run", "memdiag record -- COMMAND makes one")
}
