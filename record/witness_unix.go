//go:build unix

package record

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// WitnessName is the name under which memdiag starts itself as a witness of signals. It differs from memdiag's own, so that killall
// memdiag signals memdiag alone.
const WitnessName = "signal-witness"

// Witness runs the whole witness if this process is named WitnessName, and returns false in all other processes.
//
// A process cannot see whether a signal was sent to it alone or to its group as well. The witness does nothing but run beside the
// child: a signal that it receives was sent to the group, or to each process of a service or a job, and so to the child, too.
func Witness() bool {
	if len(os.Args) == 0 || os.Args[0] != WitnessName {
		return false
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, passed...)
	answer := listens
	var seen []os.Signal
	for request := make([]byte, 1); ; {
		if _, err := os.Stdout.Write([]byte{answer}); err != nil {
			return true
		}
		if _, err := os.Stdin.Read(request); err != nil {
			return true // memdiag has ended
		}
		for len(signals) > 0 {
			seen = append(seen, <-signals)
		}
		answer = gotNot
		asked := func(s os.Signal) bool { return s == syscall.Signal(request[0]) }
		if slices.ContainsFunc(seen, asked) {
			seen, answer = slices.DeleteFunc(seen, asked), got
		}
	}
}

// A witness's answers: at its start, and when it is asked for a signal by number.
const (
	listens byte = 'l'
	got     byte = 'g'
	gotNot  byte = 'n'
)

// witness is a running witness process.
type witness struct {
	process *exec.Cmd
	ask     io.WriteCloser
	answers chan byte
}

// witnessTimeout is how long a witness may take to start and to answer; long, for a busy machine.
const witnessTimeout = time.Second

// newWitness starts a witness. It returns nil if that fails, and then every signal is passed on.
func newWitness() *witness {
	self := "/proc/self/exe" // the running program, even if its file was replaced
	if runtime.GOOS != "linux" {
		var err error
		if self, err = os.Executable(); err != nil {
			return nil
		}
	}
	c := exec.Command(self)
	c.Args, c.Env, c.Dir = []string{WitnessName}, []string{}, "/"
	ask, err := c.StdinPipe()
	if err != nil {
		return nil
	}
	said, err := c.StdoutPipe()
	if err != nil || c.Start() != nil {
		return nil
	}
	w := &witness{c, ask, make(chan byte, 1)}
	go func() {
		defer close(w.answers)
		for of := make([]byte, 1); ; {
			if _, err := io.ReadFull(said, of); err != nil {
				return
			}
			w.answers <- of[0]
		}
	}()
	if _, err := w.answer(); err != nil {
		w.end()
		return nil
	}
	return w
}

var errNoAnswer = errors.New("the process that watches signals does not answer")

func (w *witness) answer() (byte, error) {
	select {
	case a, ok := <-w.answers:
		if ok {
			return a, nil
		}
	case <-time.After(witnessTimeout):
	}
	return 0, errNoAnswer
}

// saw reports whether the witness has received a signal since it was last asked for it.
func (w *witness) saw(s os.Signal) (bool, error) {
	number := s.(syscall.Signal) //nolint:forcetypeassert // there is no other on Unix
	if _, err := w.ask.Write([]byte{byte(number)}); err != nil {
		return false, err
	}
	a, err := w.answer()
	return a == got, err
}

func (w *witness) end() {
	_ = w.ask.Close()
	_ = w.process.Process.Kill()
	_ = w.process.Wait() // it was killed
}
