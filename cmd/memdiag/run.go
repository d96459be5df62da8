package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/snapshot/files"
)

// program is "memdiag", or the words that a user types in a clone: go run builds into a folder that is deleted afterwards.
func program() string {
	if path, err := os.Executable(); err == nil && strings.Contains(filepath.ToSlash(path), "/go-build") {
		return "go run ./cmd/memdiag"
	}
	return "memdiag"
}

// environment is all that a command may use besides its arguments. Nothing else in this package reads a stream, a clock or a variable
// of the process.
type environment struct {
	stdout *sink   // data; a command may ignore its errors, since run checks them
	talk   *talker // all messages for people, on standard error
	// out describes standard output; decided before a command runs.
	out    terminal
	getenv func(string) string
	now    func() time.Time
	rank   int // the requested rank of a run
	opener files.Opener
	// knownFile lists known leaks of libraries; "" for the file in the working folder, if there is one.
	knownFile    string
	usersLibrary func() ([]baseline.LibraryLeak, error) // the leaks that it lists; nil before the first call
	// within says why a file that a run names may not be read; nil if all may.
	within func(name string) error
	// folders are the folders of runs that were listed, by path.
	folders map[string]*files.Folder
	// interrupted is closed by the first interrupt; nil if there can be none.
	interrupted <-chan struct{}
	// child has the original streams, for a process that inherits them. Commands do not write to them.
	child streams
}

type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run is the whole command. It returns the exit code and does not touch the process except for signals, which it handles while it runs.
// The first interrupt or hang-up cancels the command's context. A second interrupt ends the process immediately; a second hang-up does
// not, since a closing terminal may send several. An ignored signal, as in a shell's background job or under nohup, stays ignored, here
// and in a recorded command.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ends := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(os.Interrupt) {
		ends = append(ends, os.Interrupt)
	}
	base, end := context.WithCancel(context.Background())
	defer end()
	ctx, stop := signal.NotifyContext(base, ends...)
	defer stop()
	context.AfterFunc(ctx, stop)
	if !signal.Ignored(syscall.SIGHUP) {
		hangUp := make(chan os.Signal, 1)
		signal.Notify(hangUp, syscall.SIGHUP)
		defer signal.Stop(hangUp)
		go func() {
			select {
			case <-hangUp:
				end()
			case <-ctx.Done():
			}
		}()
	}

	// Unless someone listens for SIGPIPE, the runtime dies on a write to a closed standard output. If it were ignored instead, children
	// would inherit that.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	env := &environment{
		stdout: &sink{w: abandoning{stdout, ctx.Done()}},
		talk:   &talker{w: abandoning{stderr, ctx.Done()}, now: time.Now, progressed: time.Now(), program: program()},
		getenv: os.Getenv,
		now:    time.Now,
		child:  streams{stdin, stdout, stderr},
	}
	return env.conclude(ctx, env.execute(ctx, args))
}

// execute runs the command that args name. A panic becomes an error, so that a user sees no stack that he did not ask for.
func (env *environment) execute(ctx context.Context, args []string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	env.interrupted = ctx.Done()
	root := newRootCommand(env)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return nil
	}
	if failed, ok := errors.AsType[*commandError](err); ok {
		return failed.err
	}
	// Other errors are cobra's, about the arguments.
	return usageOf(command, err)
}

// conclude reports an error, if any, and returns the exit code.
func (env *environment) conclude(ctx context.Context, err error) int {
	env.talk.end()
	if env.stdout.err != nil && (err == nil || errors.Is(err, env.stdout.err)) {
		if errors.Is(env.stdout.err, syscall.EPIPE) {
			return exitFine // the reader, such as head, has ended
		}
		err = &exitError{code: exitOwn, err: fmt.Errorf("standard output: %w", env.stdout.err)}
	}
	if err == nil {
		return exitFine
	}
	err = told(ctx, err)
	env.talk.fail(err)
	if p, ok := errors.AsType[*panicError](err); ok && env.getenv("MEMDIAG_DEBUG") == "1" {
		env.talk.raw(p.stack)
	}
	return exitCode(err)
}

// told is an error in the form for people.
func told(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

// panicError is a defect of memdiag: a caught panic.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("internal error: %v", e.value) }

// Hint says how to see more.
func (e *panicError) Hint() string {
	return "this is a defect of memdiag; run again with MEMDIAG_DEBUG=1 for the stack and report it"
}

// sink is standard output. It keeps the first error, after which nothing more is written.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}
