//go:build unix

package record

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// passing hands signals on to a child. It listens from before the child is
// started, so that none is lost. To one that is ignored it does not listen: the
// child would be started with the signal's default, and die of the hang-up that
// nohup has it ignore.
type passing struct {
	signals chan os.Signal
	done    sync.WaitGroup
}

func passSignals() *passing {
	p := &passing{signals: make(chan os.Signal, 16)}
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(p.signals, s)
		}
	}
	return p
}

// to begins to pass them.
func (p *passing) to(child *os.Process) {
	p.done.Go(func() {
		for s := range p.signals {
			if (s == syscall.SIGINT || s == syscall.SIGQUIT) && inForeground() {
				continue // the terminal has sent it to the child as well
			}
			_ = child.Signal(s) // it may have ended already
		}
	})
}

func (p *passing) stop() {
	signal.Stop(p.signals)
	close(p.signals)
	p.done.Wait()
}

// inForeground holds where a terminal sends the signals of its keys to memdiag
// and so to its child, which is of the same process group.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer func() { _ = tty.Close() }()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
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
