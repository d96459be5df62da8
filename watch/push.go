package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	dto "github.com/prometheus/client_model/go"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/report/metrics"
)

// Pusher sends metrics by Prometheus' remote write, for runs that nobody can scrape. It holds nothing up: what a server has not
// taken when the next is due is left out.
type Pusher struct {
	// URL takes remote write; without a path, Prometheus' is added.
	URL *url.URL
	// Authorization is the header of that name; "" for none, or what the URL has.
	Authorization string
	// Every is how often what is known is sent; 0 for each 15 seconds, as often as Prometheus scrapes.
	Every time.Duration
	// Known are the metrics at a moment; nil for none as yet.
	Known func() []*dto.MetricFamily
	// Failed takes why nothing arrives, once until it does again.
	Failed func(string)

	done   sync.WaitGroup
	cancel context.CancelFunc
}

const (
	pushEvery = 15 * time.Second
	pushPath  = "api/v1/write"
	// pushTime is how long one delivery may take with all its tries, and pushRequest each of them.
	pushTime, pushRequest = 30 * time.Second, 10 * time.Second
	// pushTries are how often one is tried.
	pushTries = 3
)

// Start begins to send.
func (p *Pusher) Start() error {
	path := strings.Trim(p.URL.Path, "/")
	if path == "" {
		path = pushPath
	}
	base := *p.URL
	base.Path = "/"
	transport := &pushed{authorization: p.Authorization}
	client := &http.Client{
		Timeout: pushRequest, Transport: transport,
		// One that is sent elsewhere would arrive at somebody whom nobody named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	api, err := remote.NewAPI(base.String(), remote.WithAPIHTTPClient(client), remote.WithAPIPath(path),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: between / 2, Max: between << 1, MaxRetries: pushTries - 1}))
	if err != nil {
		return withoutURL(err)
	}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	p.done.Go(func() { p.serve(ctx, api, transport) })
	return nil
}

func (p *Pusher) serve(ctx context.Context, api *remote.API, transport *pushed) {
	every := p.Every
	if every == 0 {
		every = pushEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	failed := false
	say := func(err error) {
		if err != nil && !failed {
			p.Failed(fmt.Sprintf("%s: %s", p, report.Printable(err.Error())))
		}
		failed = err != nil
	}
	for {
		if err := p.push(ctx, api, transport); ctx.Err() == nil {
			say(err)
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), interruptedPush)
			say(p.push(last, api, transport))
			cancel()
			return
		case <-ticker.C:
		}
	}
}

// interruptedPush is how long the last delivery may take.
const interruptedPush = 3 * time.Second

func (p *Pusher) String() string { return "--push " + p.URL.Host }

// push sends what is known.
func (p *Pusher) push(ctx context.Context, api *remote.API, transport *pushed) error {
	known := p.Known()
	if known == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pushTime)
	defer cancel()
	_, err := api.Write(ctx, remote.WriteV1MessageType, metrics.SeriesOf(known, time.Now()))
	if err != nil && transport.failed != nil {
		return transport.failed // the client's own error has the whole address, which may hold a secret
	}
	return err
}

// Close sends what is known for the last time.
func (p *Pusher) Close() {
	p.cancel()
	p.done.Wait()
}

// pushed sends requests with a header, one at a time, and reads little of an answer.
type pushed struct {
	authorization string
	failed        error // why the last request had no answer
}

func (t *pushed) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.authorization != "" {
		request.Header.Set("Authorization", t.authorization)
	}
	request.Header.Set("User-Agent", "memdiag")
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		answer.Body = limited{io.LimitReader(answer.Body, answerShown), answer.Body}
	}
	t.failed = err
	if errors.Is(err, context.DeadlineExceeded) {
		t.failed = errors.New("no answer")
	}
	return answer, err
}

type limited struct {
	io.Reader
	io.Closer
}
