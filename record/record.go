// Package record starts somebody else's process and records its memory, without
// a change to its code, its results, its streams or its exit code.
//
// A Python process gets an agent, which looks at memory from inside and writes
// snapshots into the folder of the run by itself: they outlive whatever happens
// to the process or to memdiag. Of every process the host's own figures are
// taken from outside.
package record

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// Command is what is run, with the streams that it inherits.
type Command struct {
	Args           []string // its name and arguments
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            []string // NAME=VALUE, beside the environment of memdiag's own
}

// Options are how a command is recorded; the zero value chooses for itself.
type Options struct {
	// Every is how many steps lie between snapshots; 0 lets the agent choose, so
	// that at most 32 are kept and they cost little.
	Every int64
	// Interval is the time between snapshots, instead of steps; 0 is by steps.
	Interval time.Duration
	// Profile is where the command, a Go program, serves its heap profile, which is
	// then what snapshots are; "" for none. See ProfileURL.
	Profile string
	// PythonHeap is when Python's own heap is traced: "auto", "on" or "off".
	PythonHeap string
	// LogTo are the trackers of Trackers in whose open run the agent writes memory, and what WriteStanding gives it.
	LogTo []string
	// Canary has the agent leak a little on purpose, 512 B each step, to see whether
	// that would be found.
	Canary bool
	// Intervention has the agent do one thing differently between steps; nil for none.
	Intervention *Intervention
	// Experiment: the run is compared with others that are recorded alike. Losses on a GPU are read, too, for which the program waits at
	// each step, and snapshots may cost several times as much.
	Experiment bool
	// Witness is for a program that begins with a call of the function Witness, of which then
	// another process runs: a signal that the command has got as one of a process group, a
	// service or a job is not passed on to it a second time.
	Witness bool
}

// Intervention is one thing that a program does differently, to see whether that ends a leak.
type Intervention struct {
	Kind InterventionKind `json:"kind"`
	Path string           `json:"path"` // of the holder, as a snapshot names it; "" for Collect
	From float64          `json:"from"` // the step from which on, or the batch of a loader's worker; or the second if the process counts none
	// Child has it done in the processes that are recorded beside the one of their rank, such as a loader's workers, instead of in that one.
	Child bool `json:"child"`
}

// InterventionKind is what is done between the steps of a program.
type InterventionKind string

// The interventions.
const (
	Collect InterventionKind = "collect" // Python's collector of cycles runs
	Cap     InterventionKind = "cap"     // a container keeps as many of its newest items as it had at first; a cache is emptied
	Clear   InterventionKind = "clear"   // a container is emptied
	Share   InterventionKind = "share"   // a container keeps its length, and the tensors in its older items are exchanged for one like them
	Cut     InterventionKind = "cut"     // a chain of objects keeps the length that it had at first
	Detach  InterventionKind = "detach"  // a tensor, or those in a container, let go of their graph
	Unhook  InterventionKind = "unhook"  // hooks are removed that were not there at first
	Release InterventionKind = "release" // allocators give back what is free
	Seed    InterventionKind = "seed"    // each step draws the same random numbers
	Switch  InterventionKind = "switch"  // parts are off all the time: those of workers, hooks, compile and autocast that the path names, with commas
	Count   InterventionKind = "count"   // nothing is changed: objects are counted by type
)

// TypeGrowth is how many more objects of a type there are.
type TypeGrowth struct {
	Type string `json:"type"`
	More int64  `json:"more"`
}

// Intervened is what became of an intervention.
type Intervened struct {
	// PID and Rank are the process; Child is as in Intervention.
	PID   int  `json:"-"`
	Rank  int  `json:"-"`
	Child bool `json:"-"`

	Found   bool    `json:"found"`   // the holder was there
	Since   float64 `json:"since"`   // seconds since 1970 at which it was done first
	Acts    int64   `json:"acts"`    // times that it was done
	Changed int64   `json:"changed"` // objects that it removed, detached or collected
	Failed  string  `json:"failed"`  // why it was given up; "" for nothing
	Kept    int64   `json:"kept"`    // items, of the fullest container, when it was done first
	// Grown are the types whose objects became most more from the first count to the last.
	Grown []TypeGrowth `json:"grown"`
}

// Outcome is how a recorded command ended.
type Outcome struct {
	// ExitCode is the command's own; 128 and the number of the signal that ended
	// it, as shells have it.
	ExitCode int
	Signal   string // that ended it; "" where it ended by itself
	// Died says how memory ended it, as far as known, or that it was killed, a clause; "" for neither.
	Died string
	// Snapshots counts those that are in the folder.
	Snapshots int
	// Steps is how many the agent saw; 0 where it saw none. LastStep is that of the last snapshot, likewise.
	Steps, LastStep int64
	// Notes say what was not recorded and why, one sentence each.
	Notes []string
	// Found is what censuses found, one sentence each, which has been said meanwhile.
	Found []string
	// Unseen is the memory that was not recorded.
	Unseen []snapshot.Unseen
	// Code is the program's own, in all its processes that were recorded.
	Code snapshot.Code
	// Followed is whether there are tables of the command's processes.
	Followed bool
	// Packages are the versions of installed packages that any process of Python's had imported. Nil where a process
	// did not come to say it that is not beside another.
	Packages map[string]string
	// Intervened is of each process in which an intervention was done.
	Intervened []Intervened

	agents bool // there were some, or nobody knows
}

// Run starts the command, records it into out and waits for its end. Signals
// that reach memdiag are passed on. An error means that the command could not be
// started; whatever goes wrong with the recording is in the notes. The context
// is not what ends the command: signals are.
func Run(ctx context.Context, out *rundir.Writer, command Command, opts Options) (*Outcome, error) {
	path, err := exec.LookPath(command.Args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, err
	}
	dir, err := filepath.Abs(out.Dir())
	if err != nil {
		return nil, err
	}
	sweep(os.TempDir())
	agent, without := placeAgent(dir)
	cached := giveBytecode(agent)
	defer func() {
		keepBytecode(agent, cached)
		_ = os.RemoveAll(agent) // of a folder of temporary files
	}()
	program, _ := os.Executable() // without it the Python package looks for it on PATH
	settings, err := json.Marshal(agentSettings{
		Report: reportPrefix(out.Rank()), Rank: out.Rank(), Every: opts.Every, Seconds: opts.Interval.Seconds(), PythonHeap: opts.PythonHeap, Canary: opts.Canary, LogTo: opts.LogTo,
		Standing: standingName(out.Rank()), Intervention: opts.Intervention, Experiment: opts.Experiment, Agent: agent, Program: program, Begun: float64(time.Now().UnixMilli()) / 1000,
	})
	if err != nil {
		return nil, err
	}
	child := exec.Command(path, command.Args[1:]...) // not of the context, which would kill it
	child.Args[0] = command.Args[0]
	child.Stdin, child.Stdout, child.Stderr = command.Stdin, command.Stdout, command.Stderr
	child.Env = environ(append(os.Environ(), command.Env...), agent, dir, string(settings))
	signals := passSignals(opts.Witness)
	defer signals.stop()
	if ctx.Err() != nil {
		return nil, ctx.Err() // a signal came before there was anyone to pass it to
	}
	started := time.Now()
	if err := child.Start(); err != nil {
		return nil, err
	}
	signals.to(child.Process)
	var snapshots *clock
	var profiles *profiler
	if opts.Profile != "" {
		profiles = newProfiler(out, opts.Profile, opts.Interval)
		profiles.start(ctx)
	} else {
		snapshots = newClock(out, opts.Interval, hostSnapshotEvery)
		snapshots.due = time.Now().Add(snapshots.interval)
	}
	host := watchHost(ctx, child.Process.Pid, agent, out, snapshots)
	failed := child.Wait()
	outcome := &Outcome{Notes: host.stop(), Followed: host.deaths.before != nil}
	if !outcome.Followed && hidesProcesses() {
		outcome.Unseen = append(outcome.Unseen, snapshot.Unseen{Device: snapshot.Process, What: "other processes of the command: the system gave no information"})
	} else if n := host.tree.hidden; n > 0 {
		outcome.Unseen = append(outcome.Unseen, snapshot.Unseen{Device: snapshot.Process, What: fmt.Sprintf("up to %d other processes of the command, of another user: the system hides them (hidepid)", n)})
	}
	if host.failed != nil && outcome.Followed {
		outcome.Unseen = append(outcome.Unseen, snapshot.Unseen{Device: snapshot.Process, What: fmt.Sprintf("other processes of the command: their figures are incomplete: %v", host.failed)})
	}
	if profiles != nil {
		outcome.Notes = append(outcome.Notes, profiles.finish()...)
	}
	if exit, ok := errors.AsType[*exec.ExitError](failed); failed != nil && !ok {
		outcome.Notes = append(outcome.Notes, failed.Error()) // of copying a stream
	} else if ok {
		outcome.ExitCode = exit.ExitCode()
	}
	outcome.Signal, outcome.ExitCode = endedBySignal(child.ProcessState, outcome.ExitCode)
	if death, kernel := host.deaths.said(outcome.ExitCode); death != "" {
		outcome.Notes = append(outcome.Notes, death)
		switch {
		case kernel && outcome.ExitCode == 0: // its parent does without it
			outcome.Unseen = append(outcome.Unseen, snapshot.Unseen{What: death})
		case kernel:
			outcome.Died = death
		}
	}
	if outcome.ExitCode == killedCode {
		outcome.Died = cmp.Or(outcome.Died, "it was killed")
	}
	outcome.collect(dir, out.Rank())
	if outcome.Code.Files == nil {
		outcome.Code.Files = executable(path, started)
	}
	if without != nil {
		outcome.Notes = append(outcome.Notes, fmt.Sprintf("no Python process received the agent: memory is known by process, not by allocation site: %v", without))
	} else if left := outliving(agent); len(left) > 0 {
		outcome.Notes = append(outcome.Notes, fmt.Sprintf("the command has ended and left process %d running, which is no longer recorded; keep it in the foreground", left[0]))
	} else if profiles == nil && !outcome.agents {
		outcome.Notes = append(outcome.Notes, "no Python process loaded the agent: memory is known by process, not by allocation site; "+
			"the agent needs Python 3.10 or later and PYTHONPATH. A script may extend PYTHONPATH but not replace it; python -I, -E and -S ignore it")
	}
	return outcome, nil
}

const (
	claimPrefix = ".claim_"
	partSuffix  = ".tmp"
)
