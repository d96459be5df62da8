package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/record/inject"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// Attachment configures how a process that already runs is recorded.
type Attachment struct {
	Options
	// Census is the time between the two object counts that show growth without any stack; 0 for no counts.
	Census time.Duration
	// Say receives progress messages, one line each.
	Say func(line string)
}

const (
	// answersWithin is how long memdiag waits for the process to run Python code before it says that it waits.
	answersWithin = 5 * time.Second
	// leavesWithin is how long memdiag waits for the agent to leave the process.
	leavesWithin = 10 * time.Second
	// attachedEvery is the time between checks for the agent's answers.
	attachedEvery = 100 * time.Millisecond
	// leashName is the file that memdiag keeps locked while it is attached.
	leashName = "leash"
	// busyWith is how many times a process that is importing PyTorch is asked, one second apart.
	busyWith = 30
)

// AttachProcess loads the agent into a running Python process and records it until the process ends or the context does. The agent then
// leaves the process. An error means that nothing was recorded.
func AttachProcess(ctx context.Context, out *rundir.Writer, process *inject.Process, opts Attachment) (*Outcome, error) {
	dir, err := filepath.Abs(out.Dir())
	if err != nil {
		return nil, err
	}
	sweep(os.TempDir())
	agent, err := unpackAgent(os.TempDir())
	if err != nil {
		return nil, err
	}
	a := &attached{process: process, agent: agent, dir: dir, opts: opts, report: filepath.Join(dir, fmt.Sprintf("%s%d.json", reportPrefix(out.Rank()), process.InnerPID))}
	remove := true
	defer func() {
		if remove {
			_ = os.RemoveAll(agent) // a folder of temporary files
		}
	}()
	if err := a.prepare(out.Rank()); err != nil {
		return nil, err
	}
	defer func() { _ = a.leash.Close() }() // closing twice does no harm
	if err := a.begin(ctx); err != nil {
		remove = !errors.Is(err, context.Canceled) // after a cancel the process may still read the agent's files
		return nil, err
	}
	host := watchHost(ctx, process.PID, "", out, nil)
	left := a.follow(ctx)
	outcome := &Outcome{Notes: host.stop(), Followed: host.deaths.before != nil, Found: a.found}
	if !left {
		outcome.Notes = append(outcome.Notes, fmt.Sprintf("process %d has not run Python code since; the agent leaves it as soon as it runs some", process.PID))
	}
	outcome.collect(dir, out.Rank())
	return outcome, nil
}

// attached is a process with the agent in it.
type attached struct {
	process    *inject.Process
	agent, dir string // folders
	report     string // the path of the agent's report
	opts       Attachment
	leash      *os.File
	found      []string // what the census found
}

// prepare writes the files that the agent reads, and makes the process's user their owner.
func (a *attached) prepare(rank int) (err error) {
	settings, err := json.Marshal(struct {
		agentSettings
		Folder string  `json:"dir"`
		Census float64 `json:"census"`
	}{agentSettings{Report: reportPrefix(rank), Rank: rank, Every: a.opts.Every, Seconds: a.opts.Interval.Seconds(), PythonHeap: a.opts.PythonHeap}, a.dir, a.opts.Census.Seconds()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(a.agent, "settings.json"), settings, 0o600); err != nil {
		return err
	}
	if a.leash, err = os.OpenFile(filepath.Join(a.agent, leashName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	if err := lock(a.leash); err != nil {
		return errors.Join(err, a.leash.Close())
	}
	give := func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return a.process.Own(path)
	}
	return errors.Join(filepath.WalkDir(a.agent, give), a.process.Own(a.dir))
}

// begin waits until the agent has begun.
func (a *attached) begin(ctx context.Context) error {
	for tries := 1; ; tries++ {
		pending, err := a.process.Execute(ctx, filepath.Join(a.agent, "attach.py"), a.agent)
		if err != nil {
			return err
		}
		err = a.started(ctx)
		pending.Cancel()
		if busy := err != nil && strings.Contains(err.Error(), "importing PyTorch"); !busy || tries == busyWith {
			if err == nil {
				a.opts.Say(fmt.Sprintf("attached to process %d, Python %s, by %s", a.process.PID, a.process.Version, pending.How))
			}
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (a *attached) started(ctx context.Context) error {
	failed := filepath.Join(a.agent, "failed")
	for begun, said := time.Now(), false; ; {
		if _, err := os.Stat(a.report); err == nil {
			return nil
		}
		if text, err := os.ReadFile(failed); err == nil && len(text) > 0 {
			_ = os.Remove(failed) // for the next try
			return fmt.Errorf("process %d does not take the agent: %s", a.process.PID, text)
		}
		if !a.process.Runs() {
			return fmt.Errorf("process %d has ended", a.process.PID)
		}
		if !said && time.Since(begun) > answersWithin {
			said = true
			a.opts.Say(fmt.Sprintf("waiting for process %d to load the agent; it does so as soon as its main thread runs Python code (Ctrl-C to give up)", a.process.PID))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(attachedEvery):
		}
	}
}

// follow reports what the census finds and waits for the end of the process or of the context. The agent then leaves; follow reports
// whether it did.
func (a *attached) follow(ctx context.Context) (left bool) {
	told := false
	for {
		if r, err := readReport(a.report); err == nil && !told && r.Census != nil {
			told = true
			a.found = r.Census.lines()
			for _, line := range a.found {
				a.opts.Say(line)
			}
		} else if err == nil && (r.State == "stopped" || r.State == "left") {
			return a.leave()
		}
		if !a.process.Runs() {
			return true
		}
		select {
		case <-ctx.Done():
			return a.leave()
		case <-time.After(attachedEvery):
		}
	}
}

// leave releases the agent and waits until it has left.
func (a *attached) leave() bool {
	_ = a.leash.Close() // closing releases the lock
	for begun := time.Now(); time.Since(begun) < leavesWithin; time.Sleep(attachedEvery / 2) {
		if r, err := readReport(a.report); err == nil && r.State == "left" || !a.process.Runs() {
			return true
		}
	}
	return false
}

// census is the growth between two counts of a process's objects.
type census struct {
	Seconds    float64 `json:"seconds"`
	Containers []struct {
		Path   string `json:"path"`
		Kind   string `json:"kind"`
		Before int64  `json:"before"`
		Now    int64  `json:"now"`
	} `json:"containers"`
	Types []struct {
		Type   string `json:"type"`
		Before int64  `json:"before"`
		Now    int64  `json:"now"`
	} `json:"types"`
}

// told is how many containers and types are named at most.
const told = 3

// lines returns the growth, one sentence per container or type.
func (c *census) lines() (lines []string) {
	in := fmt.Sprintf("in %s", time.Duration(c.Seconds*float64(time.Second)).Round(time.Second))
	for _, g := range c.Containers[:min(told, len(c.Containers))] {
		lines = append(lines, fmt.Sprintf("%s the %s %#q grew from %d to %d items", in, g.Kind, g.Path, g.Before, g.Now))
	}
	for _, g := range c.Types[:min(told, len(c.Types))] {
		lines = append(lines, fmt.Sprintf("%s objects of type %s grew from %d to %d", in, g.Type, g.Before, g.Now))
	}
	if len(lines) == 0 {
		lines = append(lines, in+" no container and no type of objects grew")
	}
	return lines
}

// CommandOf returns the command line of a process as a list; it is empty if the command line is unknown.
func CommandOf(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(text) == 0 {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}
