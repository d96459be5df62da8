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

// passing passes signals on to a child, except those that the child has received itself. It listens from before the child starts, so
// that no signal is lost. It does not listen to ignored signals: the child would start with the signal's default action, and a hang-up
// that nohup ignores would end it.
type passing struct {
	signals chan os.Signal
	witness *witness
	done    sync.WaitGroup
}

// sentAtOnce is how long one signal may take to reach all its receivers. A terminal and kill(2) signal a process group in one call,
// timeout(1) signals a process and then its group, and systemd and SLURM signal the processes one by one.
const sentAtOnce = 100 * time.Millisecond

func passSignals(witnessed bool) *passing {
	p := &passing{signals: make(chan os.Signal, 16)}
	for _, s := range passed {
		if !signal.Ignored(s) {
			signal.Notify(p.signals, s)
		}
	}
	if witnessed {
		p.witness = newWitness()
	}
	return p
}

// early returns the signals that have come before the child starts. The witness may have received them, and the child has not.
func (p *passing) early() (all []os.Signal) {
	for len(p.signals) > 0 {
		all = append(all, <-p.signals)
	}
	return all
}

var passed = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// to starts passing signals to a child: first the early ones, and then all that come.
func (p *passing) to(child *os.Process, early []os.Signal) {
	for _, s := range early {
		_ = child.Signal(s) // it may have ended already
	}
	p.done.Go(func() {
		for _, s := range early {
			if p.witness != nil {
				_, _ = p.witness.saw(s) // a later one is another
			}
		}
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

// atOnce returns the signals that arrive together with the first, each once.
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

// endedBySignal returns the name of the signal that ended the process, and the exit code that a shell makes of it.
func endedBySignal(state *os.ProcessState, code int) (string, int) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return unix.SignalName(status.Signal()), 128 + int(status.Signal())
	}
	return "", code
}

// ofOthers reports whether a file or folder belongs to neither this user nor root, or may be written by everyone. Write permission for
// the group is allowed, since many umasks give it.
func ofOthers(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid != uint32(os.Geteuid()) && stat.Uid != 0 || info.Mode()&os.ModeSymlink == 0 && info.Mode().Perm()&0o002 != 0) //nolint:gosec // an id fits
}

// ours reports whether a file or folder belongs to this user.
func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uint32(os.Geteuid()) //nolint:gosec // an id fits
}
