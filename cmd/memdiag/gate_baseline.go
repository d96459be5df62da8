package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/gate"
	"github.com/memdiag/memdiag/report"
)

// maxBaseline is the largest size of a baseline that is read; an entry takes some 200 bytes.
const maxBaseline = 1 << 20

// readBaseline reads the file of known leaks. There are none if no file is given, or if --update-baseline will create it.
func (g *gateCall) readBaseline() (*baseline.File, error) {
	if g.baseline == "" {
		return &baseline.File{}, nil
	}
	text, err := awaited(g.env, noNews, func() ([]byte, error) { // it may be a pipe that nobody writes to
		file, err := os.Open(g.baseline)
		if err != nil {
			return nil, withHint(err, "--update-baseline writes one")
		}
		defer file.Close() //nolint:errcheck // it was only read
		return io.ReadAll(io.LimitReader(file, maxBaseline+1))
	})
	switch {
	case errors.Is(err, fs.ErrNotExist) && g.update:
		return &baseline.File{}, nil
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, badInput(err)
	}
	if len(text) > maxBaseline {
		return nil, badInput(fmt.Errorf("%s: larger than %d bytes, the limit of a baseline", g.baseline, maxBaseline))
	}
	known, err := baseline.Parse(text)
	if at, ok := errors.AsType[*baseline.Error](err); ok {
		for line := range strings.Lines(at.Excerpt()) {
			g.env.talk.raw([]byte(report.Printable(strings.TrimSuffix(line, "\n")) + "\n"))
		}
		return nil, badInput(fmt.Errorf("%s: %w", g.baseline, err))
	}
	return known, err
}

// results are the results of the ranks that could be judged.
func results(ranks []gate.Rank) (out []baseline.Ranked) {
	for _, r := range ranks {
		if r.Result != nil {
			out = append(out, baseline.Ranked{Rank: r.Number, Result: r.Result})
		}
	}
	return out
}

// hold compares the results with the baseline, and updates the baseline if requested. If a rank could not be judged, it updates
// nothing: a leak that was not seen is not fixed.
func (g *gateCall) hold(known *baseline.File, ranks []gate.Rank) (*baseline.Outcome, error) {
	ofRanks := results(ranks)
	whole := len(ofRanks) == len(ranks)
	judge := func(known *baseline.File) *baseline.Outcome {
		outcome := known.Judge(ofRanks, g.env.now())
		outcome.Partial = !g.AllRanks || g.Slice != gate.Slice{} || g.judging.against != "" ||
			slices.ContainsFunc(ranks, func(r gate.Rank) bool { return r.Doubt != "" })
		if g.strict {
			outcome.Strict()
		}
		return outcome
	}
	outcome := judge(known)
	if !g.update {
		return outcome, nil
	}
	if !whole {
		return outcome, badInput(errors.New("a run that is too short to judge updates no baseline"))
	}
	here := workingFolder()
	next := known.Update(outcome, func(f *diff.Finding) string { return here.Text(report.Place(f)) })
	text, err := next.Bytes()
	if err != nil {
		return outcome, err
	}
	if err := g.env.writeFile(g.baseline, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return outcome, err
	}
	leaks := "leaks"
	if len(next.Known) == 1 {
		leaks = "leak"
	}
	g.env.talk.say("%s knows %d %s", g.baseline, len(next.Known), leaks)
	return judge(next), nil
}
