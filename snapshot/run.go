package snapshot

import (
	"maps"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot/secret"
)

// Info is run.json: what was run and how.
type Info struct {
	SchemaVersion int               `json:"schema_version"`
	Workload      string            `json:"workload,omitempty"`
	Command       []string          `json:"command,omitzero"` // nil: none was run; empty: it was left out
	Backend       string            `json:"backend,omitempty"`
	Seed          int64             `json:"seed"`
	Parameters    map[string]string `json:"parameters,omitempty"`
	Steps         int64             `json:"steps"` // asked for, or that a command was seen to take
	Every         int64             `json:"every"` // steps between snapshots
	Started       time.Time         `json:"started"`
	Finished      *time.Time        `json:"finished,omitempty"` // nil: still running, or died
	ExitCode      *int              `json:"exit_code,omitempty"`
	Host          string            `json:"host,omitempty"`
	// Rank is the rank of the recorded task if a launcher started several; else nil.
	Rank    *int     `json:"rank,omitempty"`
	Version string   `json:"version"` // of memdiag
	Notes   []string `json:"notes,omitempty"`
	// Unseen is the memory that was not recorded. No verdict speaks of it.
	Unseen []Unseen `json:"unseen,omitempty"`
	// Bounds are what the program says of memory that it means to gather.
	Bounds []Bound `json:"bounds,omitempty"`
	// Code is the program's own code, if an agent has read it.
	Code Code `json:"code,omitzero"`
	// Followed is whether the command's processes were, and so whether the run has their tables.
	Followed bool `json:"followed,omitempty"`
	// Packages are the versions of installed packages that a Python program imported, by import name. Nil if unknown, for example if
	// the program was killed.
	Packages map[string]string `json:"packages,omitzero"`
}

// Masked is the part of info that may be stored and shown: likely secrets in the command, the parameters and the notes are masked. The
// order and number of words stay.
func (i Info) Masked() Info {
	i.Command = secret.Words(i.Command)
	i.Parameters = maps.Clone(i.Parameters)
	for name, value := range i.Parameters {
		i.Parameters[name] = secret.Value(name, value)
	}
	i.Notes, i.Unseen = slices.Clone(i.Notes), slices.Clone(i.Unseen)
	for n := range i.Notes {
		i.Notes[n] = secret.Text(i.Notes[n])
	}
	for n := range i.Unseen {
		i.Unseen[n].What = secret.Text(i.Unseen[n].What)
	}
	return i
}

// WhyFew is ": " and why the run may have few snapshots, as far as the recorder knows; else "".
func (i Info) WhyFew() string {
	if len(i.Unseen) == 0 {
		return ""
	}
	return ": " + i.Unseen[0].What
}

// Unseen is memory of a run that was not recorded.
type Unseen struct {
	Device DeviceKind `json:"device,omitempty"` // "" for any
	What   string     `json:"what"`             // one sentence
}

// Bound declares that memory allocated or held at a place stays within a number of blocks or bytes, such as a replay buffer of known
// capacity.
type Bound struct {
	// Where is a function ("ReplayBuffer.push"), a function or a line of a file
	// ("replay.py:push", "replay.py:84"), or what holds the blocks
	// ("Agent.replay.items").
	Where  string `json:"where"`
	Blocks int64  `json:"blocks,omitempty"` // 0: not bounded in number
	Bytes  Bytes  `json:"bytes,omitempty"`  // 0: not bounded in size
}

// Run is one process's snapshots in order of their marks, with the counters between them, if any.
type Run struct {
	Path      string   // of the folder; "" for loose files
	Files     []string // all that was read, or tried, with their folders
	Info      Info     // zero if there is no run.json
	Unnamed   bool     // whether the folder is of a recorded command, but no run.json says of which
	Snapshots []*Snapshot
	Series    *Series // nil if the run has no counters
	Tree      *Tree   // nil if the command's processes are unknown
	Losses    *Losses // nil if none were recorded
	Peaks     []Peak  // of steps whose input the program marked, in order
	// Children are processes that were recorded beside this one, each a run of its own with a Role, and what this one did by the
	// clock after its last step.
	Children []*Run
	// Role and PID are set for a child; "" and 0 otherwise. Started is when it began, as in Tree; 0 if unknown.
	Role    string
	PID     int
	Started int64
	// Machine is the name of the one that this was recorded on, of a run of several; "" of others.
	Machine string
	// AfterStep is set if this child is what a process did after its last step: it is that step. 0 otherwise.
	AfterStep int64
	// Ranks are the ranks with files in the folder, ascending; the snapshots are of one of them. It is nil if no name has a rank.
	Ranks []int
	// Notes say what of the folder could not be read, one sentence each.
	Notes []string
	// Unread are those of the notes that are of snapshots.
	Unread []string
	// Partial reports whether the notes are about lost data, such as a truncated file, so that the run was more than is here.
	Partial bool
}

// Series holds counters per step: the meters of every device and the live count
// and bytes of every site. All its columns share one Stacks table.
type Series struct {
	Devices []Device // meters as of the last point
	Stacks  *Stacks
	Sites   []SeriesSite
	Points  []Point
}

// SeriesSite names one site of a series. Its position is its id in Point.Sites.
type SeriesSite struct {
	Device int // index into Series.Devices
	Stack  StackID
}

// Point is one step's counters. Sites that are not listed hold nothing.
type Point struct {
	Mark   Mark
	Meters []Meters // one a device
	Sites  []SiteCount
}

// SiteCount is what one site holds at one point, ascending by site.
type SiteCount struct {
	Site  int32
	Count int64
	Bytes Bytes
}

// Is reports whether a child is a process of the tree. A number is used again.
func (r *Run) Is(p *TreeProcess) bool {
	return r.PID == p.PID && (r.Started == 0 || r.Started == p.Started)
}

// OutOfMemory is the last snapshot with a recorded failed request for memory, of the run itself or else of another process; nil for
// none.
func (r *Run) OutOfMemory() *Snapshot {
	for _, s := range slices.Backward(r.Snapshots) {
		if s.History.Refused != nil {
			return s
		}
	}
	for _, c := range r.Children {
		if s := c.OutOfMemory(); s != nil {
			return s
		}
	}
	return nil
}
