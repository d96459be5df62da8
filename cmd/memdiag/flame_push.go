package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/report/profilestore"
	"github.com/memdiag/memdiag/snapshot"
)

// profilePush is the server that flame sends a profile to, with the profile's labels.
type profilePush struct {
	to     urlFlag
	labels labelsFlag
}

func (p *profilePush) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&p.to, "push", "in place of a file, send what grew to Pyroscope at this `URL`, or to Parca if it ends in /profiles/writeraw; $"+pushVariable+" is the header Authorization")
	flags.Var(&p.labels, "label", "with --push, a label `NAME=VALUE`, in addition to run, rank and commit; may be repeated")
	for _, other := range []string{"output", "tree", "rate", "invert"} {
		cmd.MarkFlagsMutuallyExclusive("push", other)
	}
}

// send sends the growth in a profile: the servers sum profiles, and accept no negative values.
func (p *profilePush) send(cmd *cobra.Command, env *environment, run *snapshot.Run, profile *report.Profile) error {
	grown := *profile
	grown.Samples = slices.DeleteFunc(slices.Clone(profile.Samples), func(s report.Sample) bool { return s.Value().Bytes <= 0 })
	if len(grown.Samples) == 0 {
		env.talk.say("nothing grew that could be sent")
		return nil
	}
	var text bytes.Buffer
	if err := report.Pprof(&text, &grown); err != nil {
		return err
	}
	labels := map[string]string{"run": nameOf(run)}
	if commit := cmp.Or(env.getenv("GITHUB_SHA"), env.getenv("CI_COMMIT_SHA")); commit != "" {
		labels["commit"] = commit
	}
	last := run.Snapshots[len(run.Snapshots)-1]
	if last.Rank != snapshot.NoRank {
		labels["rank"] = strconv.Itoa(last.Rank)
	}
	maps.Copy(labels, p.labels)
	kind := "bytes"
	if profile.Growth {
		kind = "growth_bytes"
	}
	store := &profilestore.Store{URL: p.to.URL, Authorization: env.getenv(pushVariable)}
	from, until := run.Snapshots[0].Mark.Time, last.Mark.Time
	if until.IsZero() { // many formats have no times
		until = time.Now()
		from = until
	}
	err := store.Send(cmd.Context(), profilestore.Profile{
		Gzipped: text.Bytes(), Type: kind, Name: "memdiag", Labels: labels, From: from, Until: until,
	})
	if err != nil {
		return &exitError{exitOwn, withHint(fmt.Errorf("--push %s: %s", p.to.String(), report.Printable(err.Error())), "Pyroscope takes profiles at its address alone, such as http://localhost:4040, and Parca at http://localhost:7070/profiles/writeraw")}
	}
	env.talk.say("sent %s to %s", counted(len(grown.Samples), "stack"), p.to.String())
	return nil
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// labelsFlag is a flag for labels.
type labelsFlag map[string]string

func (l *labelsFlag) String() string { return "" }
func (l *labelsFlag) Type() string   { return "NAME=VALUE" }

// Set implements pflag.Value.
func (l *labelsFlag) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" {
		return errors.New("want NAME=VALUE")
	}
	if *l == nil {
		*l = make(labelsFlag)
	}
	(*l)[name] = value
	return nil
}
