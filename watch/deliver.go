package watch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// Receiver takes an alarm, or the end of one.
type Receiver interface {
	// Takes reports whether it wants to receive an event.
	Takes(e *report.Live) bool
	// Target identifies the receiver in full; String leaves secrets out.
	Target() string
	// Receive takes an event, and the same event as JSON on one line.
	Receive(ctx context.Context, e *report.Live, text []byte) error
	String() string
}

// repeater is a receiver that needs alarms repeated while they last.
type repeater interface {
	// every is the time between repetitions.
	every() time.Duration
	repeat(ctx context.Context) error
}

// Limits of a delivery.
const (
	commandTime = time.Minute
	requestTime = 10 * time.Second
	tries       = 3
	between     = 2 * time.Second  // after the first try; it doubles after each next try
	pause       = 30 * time.Second // before an event that did not arrive is delivered again; it doubles each time
	mostPause   = 10 * time.Minute
	waiting     = 64 // the longest queue of events for a slow receiver; more are left out
	answerShown = 200
)

// Deliverer delivers events to receivers, each in its own goroutine, so that none delays the watch.
type Deliverer struct {
	failed func(string) // called for what did not arrive
	ledger *Ledger
	pause  time.Duration
	queues []chan delivery
	done   sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

type delivery struct {
	event report.Live
	text  []byte
	tried time.Time // the last time; zero for never
}

// NewDeliverer starts to deliver events that the receivers have not yet had, according to the ledger; with a nil ledger, all events.
// What does not arrive is reported to failed, from several goroutines, and delivered again.
func NewDeliverer(receivers []Receiver, ledger *Ledger, failed func(string)) *Deliverer {
	return newDeliverer(receivers, ledger, pause, failed)
}

func newDeliverer(receivers []Receiver, ledger *Ledger, pause time.Duration, failed func(string)) *Deliverer {
	d := &Deliverer{failed: failed, ledger: ledger, pause: pause}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	for _, r := range receivers {
		queue := make(chan delivery, waiting)
		d.queues = append(d.queues, queue)
		d.done.Go(func() { d.serve(r, queue) })
	}
	return d
}

// serve delivers a receiver's queue in order, and repeats what it needs repeated. A failure to repeat is reported once, until it works
// again. What did not arrive is retried as long as the watch runs.
func (d *Deliverer) serve(r Receiver, queue <-chan delivery) {
	var again <-chan time.Time
	if r, is := r.(repeater); is {
		ticker := time.NewTicker(r.every())
		defer ticker.Stop()
		again = ticker.C
	}
	o := outbox{to: r, d: d}
	failed := false
	for {
		select {
		case next, open := <-queue:
			if !open {
				o.close()
				return
			}
			o.add(next)
		case <-o.retry:
			o.again()
		case <-again:
			err := r.(repeater).repeat(d.ctx) //nolint:forcetypeassert // it is one, or again is nil
			if err != nil && !failed && d.ctx.Err() == nil {
				d.failed(fmt.Sprintf("%s: %v", r, err))
			}
			failed = err != nil
		}
	}
}

// Deliver queues an event for all receivers.
func (d *Deliverer) Deliver(e report.Live, here report.Folder) {
	var text bytes.Buffer
	if err := e.JSON(&text, here); err != nil {
		d.failed(err.Error())
		return
	}
	for _, queue := range d.queues {
		select {
		case queue <- delivery{event: e, text: text.Bytes()}:
		default:
			d.failed(fmt.Sprintf("an alarm is left out: %d wait already", waiting))
		}
	}
}

// Close waits until all queues are delivered, at most for the given time.
func (d *Deliverer) Close(atMost time.Duration) {
	for _, queue := range d.queues {
		close(queue)
	}
	timer := time.AfterFunc(atMost, d.cancel)
	d.done.Wait()
	timer.Stop()
	d.cancel()
}

// Command is a shell command that is run for each leak. It gets the event as JSON on its standard input.
type Command struct {
	Line   string
	Output io.Writer // receives all its output
}

func (c Command) String() string { return "--on-leak" }

// Target implements Receiver.
func (c Command) Target() string { return "--on-leak " + c.Line }

// Takes implements Receiver.
func (c Command) Takes(e *report.Live) bool { return e.Kind == report.LiveLeak }

// Receive implements Receiver.
func (c Command) Receive(ctx context.Context, _ *report.Live, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", c.Line) //nolint:gosec // the user's own command
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), c.Output, c.Output
	together(cmd)
	cmd.WaitDelay = time.Second // a process that it left running may keep its output open
	err := cmd.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("ended after %v", commandTime)
	}
	return err
}

// Webhook is a URL that receives the beginning and the end of each alarm, as JSON that includes a text.
type Webhook struct{ URL *url.URL }

func (h Webhook) String() string { return "--webhook " + h.URL.Host }

// Target implements Receiver.
func (h Webhook) Target() string { return "--webhook " + h.URL.String() }

// Takes implements Receiver.
func (h Webhook) Takes(*report.Live) bool { return true }

// Receive implements Receiver.
func (h Webhook) Receive(ctx context.Context, _ *report.Live, text []byte) error {
	return post(ctx, h.URL.String(), text)
}

// Alertmanager sends alarms to its API v2, https://github.com/prometheus/alertmanager (api/v2/openapi.yaml). Like its other clients, it
// repeats active alarms without an end time. Alertmanager resolves an alert that is not repeated within its resolve_timeout, 5 minutes
// by default. So alerts end with the run, and also if this machine goes down.
type Alertmanager struct {
	URL *url.URL
	// Every is the time between repetitions of active alarms; 0 for a minute.
	Every time.Duration

	standing []alert // active alarms, oldest first
}

func (a *Alertmanager) String() string { return "--alertmanager " + a.URL.Host }

// Target implements Receiver.
func (a *Alertmanager) Target() string { return "--alertmanager " + a.URL.String() }

// Takes implements Receiver.
func (a *Alertmanager) Takes(*report.Live) bool { return true }

type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt,omitzero"`
}

// mostStanding bounds how many alarms are repeated.
const mostStanding = 1000

// Receive implements Receiver.
func (a *Alertmanager) Receive(ctx context.Context, e *report.Live, _ []byte) error {
	name, begins, _ := e.Alarm()
	labels := map[string]string{"alertname": "MemoryLeak", "severity": "warning", "run": e.Run.Path, "fingerprint": e.Fingerprint, "device": e.Device}
	if e.Process != "" {
		labels["process"] = e.Process
	}
	if e.Budget != nil {
		labels = map[string]string{"alertname": "MemoryBudget", "severity": "warning", "run": e.Run.Path, "budget": name}
	}
	out := alert{
		Labels:      labels,
		Annotations: map[string]string{"summary": strings.Join(e.Lines(report.Folder{}), "\n")},
		StartsAt:    e.Time,
	}
	if host := e.Run.Info.Host; host != "" {
		out.Labels["host"] = host
	}
	if e.Rank != snapshot.NoRank {
		out.Labels["rank"] = fmt.Sprint(e.Rank)
	}
	a.standing = slices.DeleteFunc(a.standing, func(s alert) bool { return maps.Equal(s.Labels, out.Labels) })
	if begins {
		a.standing = append(a.standing, out)
		a.standing = a.standing[max(0, len(a.standing)-mostStanding):]
	} else {
		out.EndsAt = e.Time
		out.StartsAt = e.Time.Add(-time.Second) // Alertmanager keeps the earlier start that it has
	}
	return a.send(ctx, out)
}

func (a *Alertmanager) every() time.Duration { return cmp.Or(a.Every, time.Minute) }

func (a *Alertmanager) repeat(ctx context.Context) error {
	if len(a.standing) == 0 {
		return nil
	}
	return a.send(ctx, a.standing...)
}

func (a *Alertmanager) send(ctx context.Context, alerts ...alert) error {
	text, err := json.Marshal(alerts)
	if err != nil {
		return err
	}
	return post(ctx, a.URL.JoinPath("api/v2/alerts").String(), text)
}

// post sends JSON. It retries if the server cannot be reached or fails.
func post(ctx context.Context, to string, text []byte) (err error) {
	for try := range tries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return cmp.Or(err, ctx.Err())
			case <-time.After(between << (try - 1)):
			}
		}
		again, failed := postOnce(ctx, to, text)
		if err = failed; err == nil || !again {
			return err
		}
	}
	return fmt.Errorf("given up after %d tries: %w", tries, err)
}

func postOnce(ctx context.Context, to string, text []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(text))
	if err != nil {
		return false, withoutURL(err)
	}
	request.Header.Set("Content-Type", "application/json")
	// After a redirect it would arrive as a GET without the alarm, or at a host that the user did not name.
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %v", requestTime)
		}
		return true, withoutURL(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, answerShown))
	code := answer.StatusCode
	if code < http.StatusMultipleChoices {
		return false, nil
	}
	err = errors.New("it answers " + report.Printable(strings.TrimSpace(answer.Status+" "+strings.TrimSpace(string(body)))))
	again = code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
	if !again && code >= http.StatusBadRequest {
		err = refusal{err}
	}
	return again, err
}

// refusal is an answer that would be the same for the same request again.
type refusal struct{ error }

// withoutURL leaves out the address, which may hold a secret.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
