package files

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// OpenRun reads the run in a folder: one of ours, or any folder with snapshot files in formats that memdiag reads, also in folders
// below it (but not those of other runs).
//
// Snapshots are sorted by their steps, then by the numbers in their names. Steps and ranks are taken from the snapshots, else from the
// names. If the snapshots only count from some start of their recording, so that their steps do not rise as those in the names do, the
// names' steps are used, and birth steps are shifted with them. If there are several ranks, the lowest is read. All snapshots share one
// table of stacks.
//
// Files that are no snapshots are ignored; in a run of ours, so are files with names that are not a snapshot's. Run.Notes lists
// snapshots that could not be read, and everything else that is missing. A run without any readable snapshot is an error, unless its
// series was read.
func OpenRun(path string) (*snapshot.Run, error) { return OpenRank(path, snapshot.NoRank) }

// OpenRank is OpenRun for one rank of several whose files are in one folder, with the rank in their names. With NoRank it reads the
// lowest.
func OpenRank(path string, rank int) (*snapshot.Run, error) { return Opener{}.OpenRank(path, rank) }

// OpenRank is the function of that name with the opener's bounds.
func (o Opener) OpenRank(path string, rank int) (*snapshot.Run, error) {
	dir, err := o.LookThrough(path)
	if err != nil {
		return nil, err
	}
	return dir.OpenRank(rank)
}

// maxInfo bounds run.json in bytes.
const maxInfo = 4 << 20

// readInfo reads run.json, or what a rank has by another name, and says whether there is one.
func readInfo(run *snapshot.Run, name string) (own bool, err error) {
	path := filepath.Join(run.Path, name)
	note := func(format string, args ...any) {
		run.Notes = append(run.Notes, path+": "+fmt.Sprintf(format, args...))
	}
	f, _, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if _, ok := errors.AsType[*InputError](err); ok {
		note("not a regular file; not read")
		run.Partial = true
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxInfo+1))
	if err != nil {
		return false, err
	}
	run.Files = append(run.Files, path)
	switch err := json.Unmarshal(text, &run.Info); {
	case len(text) > maxInfo:
		run.Info, run.Partial = snapshot.Info{}, true
		note("more than %d bytes; not read", maxInfo)
	case err != nil:
		run.Info, run.Partial = snapshot.Info{}, true
		note("not read: %v", err)
	case run.Info.SchemaVersion > rundir.SchemaVersion:
		note("schema version %d; this memdiag knows %d and may miss what is new", run.Info.SchemaVersion, rundir.SchemaVersion)
	case run.Info.Finished == nil:
		note("the run has not finished, or was stopped before it could say so")
		if kept, there := rundir.Kept(run.Path); there {
			note("the finished run that it was to replace is kept in %s", kept)
		}
	}
	run.Info = run.Info.Masked() // an older memdiag, or another program, wrote what it was given
	return true, nil
}

// readSeries reads the series log, if there is one; the rank's own if it has one. The run is useful without it, so its faults become
// notes.
func (f *Folder) readSeries(run *snapshot.Run, rank int) {
	name := rundir.SeriesName
	if own := rundir.RankSeriesName(rank); f.list.others[own] && isRegular(filepath.Join(run.Path, own)) {
		name = own
	}
	if !f.list.others[name] {
		return
	}
	path := filepath.Join(run.Path, name)
	series, notes, err := decodeSeries(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		run.Notes = append(run.Notes, err.Error()+"; the run is read without its series")
		run.Partial = true
	default:
		run.Series = series
		run.Files = append(run.Files, path)
		run.Notes = append(run.Notes, notes...)
		run.Partial = run.Partial || len(notes) > 0
	}
}

func decodeSeries(path string) (*snapshot.Series, []string, error) {
	f, size, err := openRegular(path)
	if _, ok := errors.AsType[*InputError](err); ok {
		return nil, nil, fmt.Errorf("%s: not a regular file", path)
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	return native.DecodeSeries(path, f, size)
}

// Limits on what is listed below a folder: levels and files of a folder that is not ours, and files of a run of ours, or that have a
// rank. A thousand ranks with 500 snapshots each have half a million files, whose names take 60 MB.
const (
	maxDepth = 4
	maxFiles = 20_000
	maxNamed = 1 << 20
)

// listing is what lies below a folder, as paths relative to it, by name.
type listing struct {
	files     []string
	irregular []string // of a run of ours: named as snapshots are, but pipes, folders or broken links
	runs      []string // folders of runs of their own
	beside    []string // in a run of ours: snapshots of processes beside the ranks', and from after the last step

	others map[string]bool // in a run of ours: files that are not named as snapshots. Asking a file server for each table that a rank may have takes long
}

// listFiles lists the regular files of a folder that may be snapshots, and those in folders below it unless flat, as a run of ours is.
func listFiles(root string, flat bool, names *namePatterns) (listing, error) {
	return listWithin(maxFiles, root, flat, names)
}

// listWithin is listFiles with a bound on files that may be anything.
func listWithin(most int, root string, flat bool, names *namePatterns) (listing, error) {
	list := listing{others: make(map[string]bool)}
	anything := 0 // files that may be anything
	if to, err := filepath.EvalSymlinks(root); err == nil {
		root = to // a link to a folder, such as latest, is not walked into
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if path == root {
				return err
			}
			return skip(entry) // a folder that may not be read hides no run of this user's
		}
		if path == root {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(entry.Name(), "."):
			return skip(entry)
		case entry.IsDir() && isRegular(filepath.Join(path, rundir.InfoName)):
			list.runs = append(list.runs, name)
			return fs.SkipDir
		case flat && isSnapshotOf(flat, entry.Name()) && !regular(entry, path):
			list.irregular = append(list.irregular, name)
			return skip(entry)
		case flat && !rundir.IsSnapshotName(name):
			if list.others[name] = true; len(list.others) > maxNamed {
				return tooMany(root, maxNamed)
			}
			return skip(entry)
		case entry.IsDir() && (flat || strings.Count(name, string(filepath.Separator)) >= maxDepth):
			return fs.SkipDir
		case name == rundir.InfoName || rundir.IsSeriesName(name):
			return nil
		case flat && isBeside(entry.Name()):
			if list.beside = append(list.beside, name); len(list.beside) > maxNamed {
				return tooMany(root, maxNamed)
			}
		case !entry.IsDir() && isSnapshotOf(flat, entry.Name()) && regular(entry, path):
			list.files = append(list.files, name)
			if !flat && !names.rank.MatchString(name) {
				anything++
			}
			switch {
			case anything > most:
				return tooMany(root, most)
			case len(list.files) > maxNamed:
				return tooMany(root, maxNamed)
			}
		}
		return nil
	})
	slices.SortFunc(list.files, compareNames)
	slices.SortFunc(list.runs, compareNames)
	return list, err
}

func tooMany(root string, most int) error {
	return &InputError{Reason: fmt.Sprintf("%s: more than %d files", root, most), hint: "name the folder of one run"}
}

func skip(entry fs.DirEntry) error {
	if entry != nil && entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// runReader opens the snapshots among a run's files.
type runReader struct {
	run     *snapshot.Run
	opener  Opener
	into    shared
	names   *namePatterns
	rank    int                   // that is read
	ranks   int                   // number of ranks in names of snapshots
	passed  []string              // files of no format that is read
	reasons []error               // why those files are not read
	other   *snapshot.FormatError // of the first that another tool is known to write
	broken  []error
}

// opened is a snapshot with the data from its name.
type opened struct {
	snapshot *snapshot.Snapshot
	name     string
	step     int64 // of its name
	epoch    int64 // of its name
	bare     bool  // the name's step is a number only, which may be the file's
	anew     bool  // the steps in the names begin anew in each epoch
}

func (r *runReader) read(f *Folder) error {
	files, rankless := f.ofRank[r.rank], []string(nil)
	switch without := f.ofRank[snapshot.NoRank]; {
	case r.ranks > 1:
		rankless = f.rankless()
	case r.rank != snapshot.NoRank && len(without) > 0:
		files = slices.SortedFunc(slices.Values(slices.Concat(files, without)), compareNames)
	}
	var list []opened
	var read []string
	ahead := openAhead(r.run.Path, files)
	for i, name := range files {
		r.opener.reading(filepath.Join(r.run.Path, name), i+1, len(files))
		s := r.readFile(name, ahead)
		if s == nil {
			continue
		}
		if s.Rank == snapshot.NoRank {
			s.Rank = r.rank
		}
		list = append(list, r.names.opened(s, name))
		read = append(read, name)
	}
	likeRead := alike(read)
	for i, name := range r.passed {
		if likeRead(name) {
			r.leaveOut(r.reasons[i])
		}
	}
	if r.ranks > 1 {
		r.note("files of %d ranks%s %d were read", r.ranks, oneRankOnly, r.rank)
	}
	if len(f.list.irregular) > 0 {
		r.note("%s left out, no regular files: %s", plural(len(f.list.irregular), "snapshot"), some(f.list.irregular))
		r.run.Partial = true
	}
	if len(rankless) > 0 {
		r.note("%s left out, since others name ranks and these do not: %s", plural(len(rankless), "snapshot"), some(rankless))
		r.run.Partial = true
	}
	list, note := once(r.oneRank(list))
	if note != "" {
		r.note("%s", note)
	}
	if note := setSteps(list); note != "" {
		r.note("%s", note)
	}
	if first := sets(list); first != nil {
		return &InputError{
			Reason: fmt.Sprintf("%s: %d sets of snapshots with the same steps, such as %s", r.run.Path, len(first), some(first)),
			hint:   "compare one of them, by its names: memdiag diff " + filepath.Join(r.run.Path, pattern(filepath.ToSlash(first[len(first)-1]))),
		}
	}
	list, order, err := arrange(list)
	if err != nil {
		return &InputError{Reason: r.run.Path + ": " + err.Error(), hint: "number the files, or name them in their order: memdiag diff FILE FILE …"}
	}
	if counted := slices.ContainsFunc(list, func(o opened) bool { return o.snapshot.Mark.Step != snapshot.NoStep }); order != "" && (counted || r.run.Info.Version == "") {
		r.note("%s", order) // memdiag itself records by the clock what counts no steps
	}
	for _, o := range list {
		r.run.Snapshots = append(r.run.Snapshots, o.snapshot)
	}
	return nil
}

// oneRankOnly is in the note on a run whose other ranks were not read.
const oneRankOnly = "; only those that name rank"

// OfOneRank reports whether a run's note says that only one of the ranks that its files name was
// read, which is no news to who reads them one by one.
func OfOneRank(note string) bool { return strings.Contains(note, oneRankOnly) }

func (r *runReader) note(format string, args ...any) {
	r.run.Notes = append(r.run.Notes, r.run.Path+": "+fmt.Sprintf(format, args...))
}

// choose decides which rank is read: the wanted one, or with NoRank the lowest in a snapshot's name. If no name has a rank, all files
// are read.
func (r *runReader) choose(want int, f *Folder) error {
	ranks := f.Ranks()
	for _, rank := range f.ruined {
		r.note("no snapshot of rank %d can be read", rank)
		r.run.Partial = true
	}
	r.run.Ranks = ranks
	r.rank, r.ranks = snapshot.NoRank, max(1, len(ranks))
	switch {
	case want != snapshot.NoRank && !slices.Contains(ranks, want):
		hint := "its snapshots have no ranks in their names"
		if len(ranks) > 0 {
			hint = fmt.Sprintf("there are ranks %v", ranks)
		}
		return notThere(fmt.Sprintf("%s: no snapshots of rank %d", r.run.Path, want), hint)
	case want != snapshot.NoRank:
		r.rank = want
	case len(ranks) > 0:
		r.rank = ranks[0]
	}
	return nil
}

// readFile reads the next of the files that are opened ahead; nil if it is no readable snapshot.
func (r *runReader) readFile(name string, ahead *opening) *snapshot.Snapshot {
	path := filepath.Join(r.run.Path, name)
	f, err := ahead.next()
	if err != nil {
		r.leaveOut(err)
		return nil
	}
	defer f.close()
	if f.format == nil && f.isRuined() {
		r.leaveOut(f.unknown())
		return nil
	}
	if f.format == nil {
		r.passed, r.reasons = append(r.passed, name), append(r.reasons, f.unknown())
		if r.other == nil {
			r.other = f.other()
		}
		return nil
	}
	r.run.Files = append(r.run.Files, path)
	s, err := r.opener.decode(path, f, r.into)
	if err != nil {
		r.leaveOut(err)
		return nil
	}
	return s
}

// leaveOut is for a snapshot that cannot be read.
func (r *runReader) leaveOut(err error) {
	r.broken = append(r.broken, err)
	note := leftOut(err)
	r.run.Notes, r.run.Unread = append(r.run.Notes, note), append(r.run.Unread, note)
	r.run.Partial = true
}

// leftOut is the note on a snapshot that cannot be read.
func leftOut(err error) string { return err.Error() + "; left out" }

// oneRank keeps only the lowest rank, if the snapshots themselves have several.
func (r *runReader) oneRank(list []opened) []opened {
	ranks := make(map[int]int)
	for _, o := range list {
		ranks[o.snapshot.Rank]++
	}
	if len(ranks) < 2 {
		return list
	}
	lowest := slices.MinFunc(list, func(a, b opened) int { return cmp.Compare(a.snapshot.Rank, b.snapshot.Rank) }).snapshot.Rank
	r.note("snapshots of %d ranks; rank %d was read", len(ranks), lowest)
	r.run.Partial = true
	return slices.DeleteFunc(list, func(o opened) bool { return o.snapshot.Rank != lowest })
}

// once keeps only one of files with the same snapshot, such as a pickle and its conversion: counted twice, it would halve every rate
// and double the evidence. The note says which are left out; "" for none.
func once(list []opened) (kept []opened, note string) {
	same := func(a, b *snapshot.Snapshot) bool {
		return a.Mark.Step == b.Mark.Step && taken(a).Equal(taken(b)) && a.History == b.History && a.Rank == b.Rank &&
			slices.Equal(a.Blocks.Address, b.Blocks.Address) && slices.Equal(a.Blocks.Size, b.Blocks.Size) &&
			slices.Equal(a.Blocks.State, b.Blocks.State) && slices.Equal(a.Blocks.Stack, b.Blocks.Stack) && slices.Equal(a.Blocks.Count, b.Blocks.Count) && slices.Equal(a.Blocks.BirthTime, b.Blocks.BirthTime)
	}
	var again []string
	for _, o := range list {
		twin := slices.IndexFunc(kept, func(k opened) bool { return k.step == o.step && same(k.snapshot, o.snapshot) })
		if twin >= 0 && (kept[twin].name == o.name || o.best() != snapshot.NoStep && o.snapshot.Blocks.Len() > 0) {
			again = append(again, o.name)
			continue
		}
		kept = append(kept, o)
	}
	if len(again) > 0 {
		note = fmt.Sprintf("%s left out, as another holds the same snapshot: %s", plural(len(again), "file"), some(again))
	}
	return kept, note
}

// nothing is the error for a folder without a readable snapshot.
func (r *runReader) nothing(list listing) error {
	path := r.run.Path
	switch {
	case len(r.broken) > 0:
		return fmt.Errorf("no snapshot can be read: %w", r.broken[0]) // its text has the path
	case len(list.runs) > 0:
		return &InputError{Reason: path + ": no snapshots, but runs below it", hint: "name one of " + some(list.runs)}
	case r.other != nil:
		return fmt.Errorf("no snapshot among %s: %w", plural(len(r.passed), "file"), r.other)
	case len(r.passed) > 0:
		return notThere(fmt.Sprintf("%s: no snapshot among %s: %s", path, plural(len(r.passed), "file"), some(r.passed)), "memdiag record -- COMMAND makes a run")
	}
	if info := r.run.Info; info.Version != "" {
		said := info.Notes[:min(len(info.Notes), maxSaid)]
		if info.Finished == nil {
			said = append(slices.Clip(said), "the run has not finished, or was stopped before it could say so")
		}
		return notThere(strings.TrimSuffix(path+": no snapshots: "+strings.Join(said, "; "), ": "), "record the command again")
	}
	return notThere(path+": no snapshots", "memdiag record -- COMMAND makes a run")
}

// maxSaid is how many notes of a run without snapshots are shown.
const maxSaid = 3

// plural is "1 snapshot", "2 snapshots".
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
