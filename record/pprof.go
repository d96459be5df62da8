package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/pprofio"
	"github.com/memdiag/memdiag/snapshot/rundir"
	"github.com/memdiag/memdiag/snapshot/secret"
	"github.com/memdiag/memdiag/snapshot/totals"
)

const (
	// profileEvery is the time between the first heap profiles.
	profileEvery = time.Second
	// profileTimeout bounds one request.
	profileTimeout = 10 * time.Second
	// retryEvery is the time between tries while the server does not answer.
	retryEvery = 200 * time.Millisecond
	// goneAfter is how many requests in a row must fail before the program is taken to have ended.
	goneAfter = 3
	// maxProfile bounds the size of a profile as it is sent, usually compressed.
	maxProfile = 64 << 20
	// profilePath is where Go's net/http/pprof serves the heap's profile.
	profilePath = "/debug/pprof/heap"
)

// ProfileURL completes the address of a Go program, such as "localhost:6060", to the URL of its heap profile. Unless the address has a
// query, the program is asked to collect garbage first: a profile shows the state at the last collection, which may be long ago.
func ProfileURL(address string) (string, error) {
	if strings.HasPrefix(address, ":") {
		address = "localhost" + address
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%s: not an address such as http://localhost:6060", secret.Text(address)) // the error of url.Parse may quote a secret
	}
	if path := strings.TrimSuffix(u.Path, "/"); path == "" || path == strings.TrimSuffix(profilePath, "/heap") {
		u.Path = profilePath
	}
	if u.RawQuery == "" {
		u.RawQuery = "gc=1"
	}
	return u.String(), nil
}

// Attach records the heap profiles that a running program serves at a URL, until the context or the program ends. The program is not
// changed. An error means that there was no profile at all.
func Attach(ctx context.Context, out *rundir.Writer, address string, interval time.Duration) (*Outcome, error) {
	p := newProfiler(out, address, interval)
	p.poll(ctx, true)
	outcome := &Outcome{Snapshots: len(p.clock.paths), Notes: p.notes()}
	if outcome.Snapshots == 0 && p.failed != nil {
		return nil, p.failed
	}
	return outcome, nil
}

// profiler requests a program's heap profile at intervals.
type profiler struct {
	url    string
	shown  string // the URL without its secrets
	clock  *clock
	client http.Client
	failed error // the last failure
	stop   error // a failure that ended the recording

	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newProfiler(out *rundir.Writer, address string, interval time.Duration) *profiler {
	return &profiler{url: address, shown: secret.Text(address), clock: newClock(out, interval, profileEvery), client: http.Client{Timeout: profileTimeout}}
}

// start polls until finish is called.
func (p *profiler) start(ctx context.Context) {
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.done.Go(func() { p.poll(ctx, false) })
}

func (p *profiler) finish() []string {
	p.cancel()
	p.done.Wait()
	return p.notes()
}

func (p *profiler) notes() []string {
	switch {
	case p.stop != nil:
		return []string{fmt.Sprintf("recording of heap profiles stopped: %v", p.stop)}
	case len(p.clock.paths) == 0 && p.failed != nil:
		return []string{fmt.Sprintf("no heap profile was recorded: %v", p.failed)}
	}
	return nil
}

// poll takes profiles until the context ends. If memdiag did not start the program, it also stops when the program has ended.
func (p *profiler) poll(ctx context.Context, attached bool) {
	for failures := 0; ; {
		wait := retryEvery
		if now := time.Now(); p.clock.isDue(now) {
			profile, err := p.fetch(ctx)
			if ctx.Err() != nil {
				return // a cancelled request is not the program's failure
			}
			if err == nil {
				failures = 0
				err = p.clock.take(now, ".pb.gz", func(w io.Writer) error {
					_, err := w.Write(profile)
					return err
				})
				if err != nil {
					p.stop = err
					return
				}
			} else {
				p.failed = err
				failures++
			}
			if attached && failures >= goneAfter {
				return
			}
		}
		if failures == 0 {
			wait = time.Until(p.clock.due)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// fetch returns a profile as it was sent, after checking that it can be decoded.
func (p *profiler) fetch(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: not a valid URL", p.shown)
	}
	response, err := p.client.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		failed.URL = secret.Text(failed.URL) // the URL may be that of a redirection
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s; does the program import net/http/pprof?", p.shown, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxProfile+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxProfile {
		return nil, fmt.Errorf("%s: a profile of more than %s", p.shown, snapshot.Bytes(maxProfile))
	}
	if _, err := pprofio.Decode(p.shown, bytes.NewReader(body), int64(len(body)), totals.Options{}); err != nil {
		return nil, errors.Join(errors.New("not a heap profile"), err)
	}
	return body, nil
}
