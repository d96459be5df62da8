// Package record runs a command and records its memory, without changing its code, results, streams or exit code.
//
// A Python process gets an agent, which reads memory from inside and writes snapshots into the run's folder itself, so that they
// survive a crash of the process or of memdiag. For every process, the host's own figures are read from outside.
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

// Command is the command to run, with the streams that it inherits.
type Command struct {
	Args           []string // its name and arguments
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            []string // NAME=VALUE, added to memdiag's own environment
}

// Options configure how a command is recorded; the zero value has memdiag choose.
type Options struct {
	// Every is the number of steps between snapshots. With 0 the agent chooses, so that at most 32 are kept and the cost is small.
	Every int64
	// Interval is the time between snapshots, instead of steps; 0 counts by steps.
	Interval time.Duration
	// Profile is the address at which the command, a Go program, serves its heap profile. The snapshots are then these profiles. It is
	// "" for none. See ProfileURL.
	Profile string
	// PythonHeap says whether Python's own heap is traced: "auto", "on" or "off".
	PythonHeap string
	// LogTo names experiment trackers, out of Trackers. The agent logs memory, and what WriteStanding passes to it, to the tracker's
	// open run.
	LogTo []string
	// Canary has the agent leak 512 B per step on purpose, to check that memdiag would find such a leak.
	Canary bool
	// Intervention has the agent change one thing between steps; nil for none.
	Intervention *Intervention
	// Experiment says that the run is compared with others that are recorded the same way. Losses on a GPU are then read, too, for
	// which the program waits at each step, and snapshots may cost several times as much.
	Experiment bool
	// Witness says that the program calls the function Witness at its start, so that another process can run as a witness. A signal
	// that the command has already received, as part of a process group, a service or a job, is then not passed on to it a second time.
	Witness bool
}

// Intervention is one change in a program's behavior that tests whether it ends a leak.
type Intervention struct {
	Kind InterventionKind `json:"kind"`
	Path string           `json:"path"` // the path of the holder, as in a snapshot; "" for Collect
	From float64          `json:"from"` // the first step, or batch of a loader's worker, at which it is done; in seconds if the process counts none
	// Child says that it is done in processes recorded beside the one of their rank, such as a loader's workers, instead of in that
	// one.
	Child bool `json:"child"`
}

// InterventionKind is the action between the steps of a program.
type InterventionKind string

// The interventions.
const (
	Collect InterventionKind = "collect" // run Python's collector of cycles
	Cap     InterventionKind = "cap"     // cut a container to its newest items, as many as it had at first; empty a cache
	Clear   InterventionKind = "clear"   // empty a container
	Share   InterventionKind = "share"   // keep a container's length, but replace the tensors in its older items by one like them
	Cut     InterventionKind = "cut"     // cut a chain of objects to its length at first
	Detach  InterventionKind = "detach"  // detach a tensor, or those in a container, from their graph
	Unhook  InterventionKind = "unhook"  // remove hooks that did not exist at first
	Release InterventionKind = "release" // have allocators return free memory
	Seed    InterventionKind = "seed"    // draw the same random numbers in each step
	Switch  InterventionKind = "switch"  // switch parts off all the time: those of workers, hooks, compile and autocast that the path lists, with commas
	Count   InterventionKind = "count"   // change nothing, but count objects by type
)

// TypeGrowth is how many more objects of a type exist than before.
type TypeGrowth struct {
	Type string `json:"type"`
	More int64  `json:"more"`
}

// Intervened is the result of an intervention.
type Intervened struct {
	// PID and Rank are the process; Child is as in Intervention.
	PID   int  `json:"-"`
	Rank  int  `json:"-"`
	Child bool `json:"-"`

	Found   bool    `json:"found"`   // whether the holder existed
	Since   float64 `json:"since"`   // when it was first done, in seconds since 1970
	Acts    int64   `json:"acts"`    // how many times it was done
	Changed int64   `json:"changed"` // objects that were removed, detached or collected
	Failed  string  `json:"failed"`  // why it was given up; "" if it was not
	Kept    int64   `json:"kept"`    // items of the fullest container when it was first done
	// Grown lists the types whose objects grew most from the first count to the last.
	Grown []TypeGrowth `json:"grown"`
}

// Outcome is the result of recording a command.
type Outcome struct {
	// ExitCode is the command's own. If a signal ended it, it is 128 plus the signal's number, as in shells.
	ExitCode int
	Signal   string // the signal that ended the command; "" if it ended by itself
	// Died is a clause that says how memory ended the command, as far as known, or that it was killed; "" for neither.
	Died string
	// Snapshots counts the snapshots in the folder.
	Snapshots int
	// Steps is how many steps the agent saw; 0 for none. LastStep is the step of the last snapshot, likewise.
	Steps, LastStep int64
	// Notes say what was not recorded and why, one sentence each.
	Notes []string
	// Found is what the census found, one sentence each. These were already passed to Say.
	Found []string
	// Unseen lists memory that was not recorded.
	Unseen []snapshot.Unseen
	// Code is the program's own code, in all its recorded processes.
	Code snapshot.Code
	// Followed reports whether there are tables of the command's processes.
	Followed bool
	// Packages are the versions of the installed packages that any Python process has imported. It is nil if a process that is no child
	// of another could not report them.
	Packages map[string]string
	// Intervened has an item for each process in which an intervention was done.
	Intervened []Intervened

	agents bool // whether there were agents, also true if that is unknown
}

// Run starts the command, records it into out and waits for its end. Signals that memdiag receives are passed on. An error means that
// the command could not be started; problems with the recording are in the notes. The end of ctx does not end the command; signals do.
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
		_ = os.RemoveAll(agent) // a folder of temporary files
	}()
	program, _ := os.Executable() // without it the Python package looks for it on PATH
	settings, err := json.Marshal(agentSettings{
		Report: reportPrefix(out.Rank()), Rank: out.Rank(), Every: opts.Every, Seconds: opts.Interval.Seconds(), PythonHeap: opts.PythonHeap, Canary: opts.Canary, LogTo: opts.LogTo,
		Standing: standingName(out.Rank()), Intervention: opts.Intervention, Experiment: opts.Experiment, Agent: agent, Program: program, Begun: float64(time.Now().UnixMilli()) / 1000,
	})
	if err != nil {
		return nil, err
	}
	child := exec.Command(path, command.Args[1:]...) // not CommandContext, which would kill it
	child.Args[0] = command.Args[0]
	child.Stdin, child.Stdout, child.Stderr = command.Stdin, command.Stdout, command.Stderr
	child.Env = environ(append(os.Environ(), command.Env...), agent, dir, string(settings))
	signals := passSignals(opts.Witness)
	defer signals.stop()
	if ctx.Err() != nil {
		return nil, ctx.Err() // a signal came before there was anyone to pass it to
	}
	early, started := signals.early(), time.Now()
	if err := child.Start(); err != nil {
		return nil, err
	}
	signals.to(child.Process, early)
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
		outcome.Notes = append(outcome.Notes, failed.Error()) // an error in copying a stream
	} else if ok {
		outcome.ExitCode = exit.ExitCode()
	}
	outcome.Signal, outcome.ExitCode = endedBySignal(child.ProcessState, outcome.ExitCode)
	if death, kernel := host.deaths.said(outcome.ExitCode); death != "" {
		outcome.Notes = append(outcome.Notes, death)
		switch {
		case kernel && outcome.ExitCode == 0: // its parent goes on without it
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
	absent := ""
	if without != nil {
		absent = fmt.Sprintf("no Python process received the agent (%v): memory is known by process, not by allocation site", without)
	} else if left := outliving(agent); len(left) > 0 {
		outcome.Notes = append(outcome.Notes, fmt.Sprintf("the command has ended and left process %d running, which is no longer recorded; keep it in the foreground", left[0]))
	} else if profiles == nil && !outcome.agents {
		needs := "the agent needs"
		if took := time.Since(started); outcome.Signal != "" && took < mayStart {
			needs = fmt.Sprintf("%s ended the command after %s, perhaps before the agent could start. If a longer run does not load it either, it needs", outcome.Signal, took.Round(time.Millisecond))
		}
		absent = "no Python process loaded the agent: memory is known by process, not by allocation site; " +
			needs + " Python 3.10 or later and PYTHONPATH. A script may extend PYTHONPATH but not replace it; python -I, -E and -S ignore it"
	}
	if absent != "" {
		outcome.Notes = append(outcome.Notes, absent)
		if host.tree.python || isPython(filepath.Base(path)) { // it may end before the first look
			outcome.Unseen = append(outcome.Unseen, snapshot.Unseen{What: absent})
		}
	}
	return outcome, nil
}

// mayStart is how long Python may take until the agent is loaded. It is 0.07 s on an idle machine, and seconds from a network file system.
const mayStart = 5 * time.Second

const (
	claimPrefix = ".claim_"
	partSuffix  = ".tmp"
)
