package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/watch"
	"github.com/memdiag/memdiag/watch/screen"
)

// mayFill returns an error for --full if there is no terminal to fill.
func (w *watching) mayFill(cmd *cobra.Command) error {
	if w.format.value != "text" {
		return usagef(cmd, "--full and --format %s exclude each other", w.format.value)
	}
	in, _ := w.env.child.in.(*os.File)
	if in == nil || !newTerminal(in, colorNever, w.env.getenv).tty || !w.env.out.tty || w.env.out.dumb {
		return usageOf(cmd, withHint(errors.New("--full needs a terminal for its input and output"), "without it, memdiag watch prints a line when something changes"))
	}
	return nil
}

// onScreen follows the run on the whole terminal until the user quits. Messages from that time are printed afterwards.
func (w *watching) onScreen(cmd *cobra.Command, follower *watch.Follower) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	here := workingFolder()
	s := screen.New(ctx, screen.Options{
		In: w.env.child.in, Out: w.env.child.out, Color: w.env.out.color, Here: here,
		Report: func() (string, error) { return w.report(cmd, follower.Dir) },
	})
	meanwhile := &said{show: s.Say}
	child := w.env.child.err
	back := w.env.talk.divert(meanwhile)
	w.env.child.err = meanwhile // the output of --on-leak's command

	show := func(look *watch.Look, events []report.Live) error { //nolint:unparam // like tell, which has a file to write to
		for _, e := range events {
			for i, line := range e.Lines(here) {
				meanwhile.line(line, i == 0)
			}
		}
		s.Look(look)
		return nil
	}
	followed := make(chan error, 1)
	go func() {
		err := w.safely(ctx, follower, show)
		if exit, ok := errors.AsType[*exitError](err); err != nil && (!ok || exit.err != nil) {
			s.Quit() // otherwise the run has ended, and the user may want to go on reading
		}
		followed <- err
	}()
	drawn := s.Run()
	cancel()
	err := <-followed
	back()
	w.env.child.err = child
	for _, line := range meanwhile.lines {
		if _, err := fmt.Fprintln(w.env.stdout, line); err != nil {
			return err
		}
	}
	if drawn != nil {
		return &exitError{exitOwn, drawn}
	}
	return err
}

// safely is follow with an error instead of a panic, so that the terminal is restored.
func (w *watching) safely(ctx context.Context, follower *watch.Follower, show func(*watch.Look, []report.Live) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return w.follow(ctx, follower, show)
}

// report writes the page of a run into the working folder.
func (w *watching) report(cmd *cobra.Command, dir string) (string, error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	path := filepath.Base(whole) + ".html"
	env := *w.env
	env.folders, env.rank = nil, snapshot.NoRank // the run has more files by now
	return path, env.writeReport(cmd, []string{dir}, path, w.judging, &atFlag{auto: true})
}

// mostSaid is how many lines are kept to print after the screen.
const mostSaid = 1000

// said collects messages while a screen is shown.
type said struct {
	show  func(string)
	mu    sync.Mutex
	lines []string
	rest  []byte // part of a line that has not ended
}

// Write shows and keeps lines.
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.rest = append(s.rest, p...)
	var whole []string
	for {
		line, rest, found := bytes.Cut(s.rest, []byte("\n"))
		if !found && len(s.rest) < mostLine {
			break
		}
		whole, s.rest = append(whole, string(line)), rest
	}
	s.mu.Unlock()
	for _, line := range whole {
		s.line(report.Printable(line), true)
	}
	return len(p), nil
}

// mostLine is the longest line in bytes.
const mostLine = 4096

// line keeps a line, and shows it if shown is set.
func (s *said) line(text string, shown bool) {
	s.mu.Lock()
	s.lines = append(s.lines, text)
	s.lines = slices.Delete(s.lines, 0, max(0, len(s.lines)-mostSaid))
	s.mu.Unlock()
	if shown {
		s.show(text)
	}
}
