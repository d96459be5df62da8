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

// Pusher sends metrics by Prometheus' remote write, for runs that cannot be scraped. It delays nothing: a push that is not done when
// the next is due is dropped.
type Pusher struct {
	// URL accepts remote write; without a path, Prometheus' default is added.
	URL *url.URL
	// Authorization is the value of the header with that name; "" for none, or for the URL's own user.
	Authorization string
	// Every is the time between pushes; 0 for 15 seconds.
	Every time.Duration
	// Known returns the current metrics; nil if there are none yet.
	Known func() []*dto.MetricFamily
	// Failed is called with the reason if nothing arrives, once until something arrives again.
	Failed func(string)

	done   sync.WaitGroup
	cancel context.CancelFunc
}

const (
	pushEvery = 15 * time.Second
	pushPath  = "api/v1/write"
	// pushTime bounds one push with all its tries, and pushRequest each try.
	pushTime, pushRequest = 30 * time.Second, 10 * time.Second
	// pushTries is how many times a push is tried.
	pushTries = 3
)

// Start begins to push.
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
		// After a redirect it would arrive at a host that the user did not name.
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

// interruptedPush bounds the last push.
const interruptedPush = 3 * time.Second

func (p *Pusher) String() string { return "--push " + p.URL.Host }

// push sends the current metrics.
func (p *Pusher) push(ctx context.Context, api *remote.API, transport *pushed) error {
	known := p.Known()
	if known == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pushTime)
	defer cancel()
	_, err := api.Write(ctx, remote.WriteV1MessageType, metrics.SeriesOf(known, time.Now()))
	if err != nil && transport.failed != nil {
		return transport.failed // the client's own error has the full address, which may contain a secret
	}
	return err
}

// Close sends the current metrics for the last time.
func (p *Pusher) Close() {
	p.cancel()
	p.done.Wait()
}

// pushed sends requests with a header, one at a time, and limits how much of an answer is read.
type pushed struct {
	authorization string
	failed        error // why the last request got no answer
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
