package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/snapshot/secret"
	"github.com/memdiag/memdiag/watch"
)

// alarms is what memdiag watch does on a leak.
type alarms struct {
	command               string
	webhook, alertmanager urlFlag
	stop                  conditionFlag
	signal                signalFlag
	wait                  time.Duration
}

func (a *alarms) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&a.command, "on-leak", "", "run this shell `COMMAND` for each leak, with the event as JSON on its standard input")
	flags.Var(&a.webhook, "webhook", "send each leak and each broken budget, and its end, as JSON to this `URL`")
	flags.Var(&a.alertmanager, "alertmanager", "send each leak and each broken budget, and its end, to the Alertmanager at this `URL`")
	flags.Var(&a.stop, "stop-on", "stop the run on this `CONDITION`: leak, budget (one is broken) or \"forecast < 30m\" (memory is full within that time); may be repeated")
	flags.Var(&a.signal, "stop-signal", "the `SIGNAL` that stops it: TERM, INT, HUP, USR1 or USR2")
	flags.DurationVar(&a.wait, "stop-wait", 2*time.Minute, "how long the run may take to end before it is killed")
	completeWords(cmd, "stop-on", []string{"leak", "budget", "forecast < 30m"})
	completeWords(cmd, "stop-signal", []string{"TERM", "INT", "HUP", "USR1", "USR2"})
}

// receivers are the receivers of alarms.
func (a *alarms) receivers(env *environment) (all []watch.Receiver) {
	if a.command != "" {
		all = append(all, watch.Command{Line: a.command, Output: env.child.err})
	}
	if a.webhook.URL != nil {
		all = append(all, watch.Webhook{URL: a.webhook.URL})
	}
	if a.alertmanager.URL != nil {
		all = append(all, &watch.Alertmanager{URL: a.alertmanager.URL})
	}
	return all
}

// lastDeliveries is how long memdiag waits after the run's end for deliveries in progress.
const lastDeliveries = 30 * time.Second

// interruptedDeliveries is the same after Ctrl-C, when a user waits for the prompt.
const interruptedDeliveries = 3 * time.Second

// end stops the run.
func (a *alarms) end(ctx context.Context, env *environment, follower *watch.Follower, why string) error {
	env.talk.say("%s: the run is sent %s, and killed after %v", why, &a.signal, a.wait)
	n, err := follower.Stop(ctx, a.signal.Signal, a.wait)
	switch {
	case n > 0 && err != nil:
		env.talk.say("memdiag no longer waits for the run to end, and does not kill it")
		return &exitError{code: exitLeak}
	case err != nil:
		return fmt.Errorf("the run cannot be stopped: %w", err)
	case n == 0:
		return errors.New("the run cannot be stopped: it has ended, or is another user's")
	}
	env.talk.say("the run has ended")
	return &exitError{code: exitLeak}
}

// urlFlag is the address of a service.
type urlFlag struct{ *url.URL }

func (u *urlFlag) String() string {
	if u.URL == nil {
		return ""
	}
	return secret.Text(u.URL.String())
}

// Type names the values in help.
func (u *urlFlag) Type() string { return "URL" }

// Set reads http://… or https://….
func (u *urlFlag) Set(v string) error {
	to, err := url.Parse(v)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return errors.New("want a URL such as https://example.org/hook") // its own text would show what may be a secret
	}
	u.URL = to
	return nil
}

// conditionFlag says when a run is stopped: if any of the conditions is met.
type conditionFlag struct {
	watch.Condition
	text string
}

func (c *conditionFlag) String() string { return c.text }

// Type names the values in help.
func (c *conditionFlag) Type() string { return "CONDITION" }

// Set reads leak, budget, or forecast < 30m.
func (c *conditionFlag) Set(v string) error {
	more, err := watch.ParseCondition(v)
	if err != nil {
		return err
	}
	c.Condition, c.text = c.Or(more), v
	return nil
}

// signalFlag is a signal by its name.
type signalFlag struct {
	syscall.Signal
	text string
}

func (s *signalFlag) String() string { return s.text }

// Type names the values in help.
func (s *signalFlag) Type() string { return "SIGNAL" }

// Set reads TERM, or SIGTERM.
func (s *signalFlag) Set(v string) (err error) {
	s.Signal, err = watch.ParseSignal(v)
	s.text = v
	return err
}
