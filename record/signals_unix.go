//go:build unix

package record

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// passing hands signals on to a child, but not those that the child has got by itself. It listens
// from before the child is started, so that none is lost. To one that is ignored it does not
// listen: the child would be started with the signal's default, and die of the hang-up that nohup
// has it ignore.
type passing struct {
	signals chan os.Signal
	witness *witness
	done    sync.WaitGroup
}

// sentAtOnce is how long a signal may take to reach all of those that it was sent to: a terminal
// and kill signal a process group in one call, timeout(1) a process and then its group, and
// systemd and SLURM one process after the other.
const sentAtOnce = 100 * time.Millisecond

func passSignals(witnessed bool) *passing {
	p := &passing{signals: make(chan os.Signal, 16)}
	if witnessed {
		p.witness = newWitness()
	}
	for _, s := range passed {
		if !signal.Ignored(s) {
			signal.Notify(p.signals, s)
		}
	}
	return p
}

var passed = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// to begins to pass them.
func (p *passing) to(child *os.Process) {
	p.done.Go(func() {
		for s := range p.signals {
			for _, s := range p.atOnce(s) {
				if p.witness == nil {
					_ = child.Signal(s) // it may have ended already
					continue
				}
				seen, err := p.witness.saw(s)
				if err != nil {
					p.witness.end()
					p.witness = nil
				}
				if !seen {
					_ = child.Signal(s)
				}
			}
		}
	})
}

// atOnce are the signals that come with the first, each of them once.
func (p *passing) atOnce(first os.Signal) []os.Signal {
	all := []os.Signal{first}
	for end := time.After(sentAtOnce); ; {
		select {
		case s, ok := <-p.signals:
			if !ok {
				return all
			}
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		case <-end:
			return all
		}
	}
}

func (p *passing) stop() {
	signal.Stop(p.signals)
	close(p.signals)
	p.done.Wait()
	if p.witness != nil {
		p.witness.end()
	}
}

// endedBySignal names the signal that ended the process, and the exit code that
// a shell makes of it.
func endedBySignal(state *os.ProcessState, code int) (string, int) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return unix.SignalName(status.Signal()), 128 + int(status.Signal())
	}
	return "", code
}

// ofOthers reports whether a file or folder is neither this user's nor root's, or all may write to it. Of
// a group it is the umask of many.
func ofOthers(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid != uint32(os.Geteuid()) && stat.Uid != 0 || info.Mode()&os.ModeSymlink == 0 && info.Mode().Perm()&0o002 != 0) //nolint:gosec // an id fits
}

// ours reports whether a file or folder is this user's.
func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uint32(os.Geteuid()) //nolint:gosec // an id fits
}
