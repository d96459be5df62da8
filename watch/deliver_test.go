package watch_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/watch"
)

func event(kind report.LiveKind) report.Live {
	return report.Live{Kind: kind, Time: time.Unix(1000, 0), Run: &snapshot.Run{Path: "my-run"}, Rank: snapshot.NoRank, Said: "something"}
}

// heard is what receivers said of deliveries that failed.
type heard struct {
	mu   sync.Mutex
	said []string
}

func (h *heard) failed(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, what)
}

func address(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAServiceThatFailsOnceIsAskedAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if asked = append(asked, r.URL.Path+" "+string(body)); len(asked) == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer service.Close()
	var h heard
	d := watch.NewDeliverer([]watch.Receiver{watch.Webhook{URL: address(t, service.URL+"/hook")}}, nil, h.failed)
	d.Deliver(event(report.LiveLeak), report.Folder{})
	d.Close(time.Minute)
	if len(asked) != 2 || asked[0] != asked[1] || len(h.said) > 0 {
		t.Fatalf("%q; %q", asked, h.said)
	}
	var got struct{ Event, Text, Run string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(asked[0], "/hook ")), &got); err != nil || got.Event != "leak" || got.Run != "my-run" || got.Text == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestABudgetIsAnAlarmOfItsOwn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var alerts []struct {
		Labels           map[string]string
		StartsAt, EndsAt time.Time
	}
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		one := alerts[len(alerts):]
		if err := json.NewDecoder(r.Body).Decode(&one); err != nil {
			t.Error(err)
		}
		alerts = append(alerts, one...)
	}))
	defer service.Close()
	b, err := budget.Parse(budget.Live, "cuda:0=5MiB")
	if err != nil {
		t.Fatal(err)
	}
	var h heard
	d := watch.NewDeliverer([]watch.Receiver{&watch.Alertmanager{URL: address(t, service.URL)}}, nil, h.failed)
	for _, kind := range []report.LiveKind{report.LiveOverBudget, report.LiveWithinBudget} {
		e := event(kind)
		e.Budget = &budget.Outcome{Budget: b, Of: "cuda:0", Used: 6 << 20, Allowed: 5 << 20}
		d.Deliver(e, report.Folder{})
	}
	d.Close(time.Minute)
	if len(alerts) != 2 || len(h.said) > 0 {
		t.Fatalf("%v; %q", alerts, h.said)
	}
	over, within := alerts[0], alerts[1]
	if over.Labels["alertname"] != "MemoryBudget" || over.Labels["budget"] != "--max-live cuda:0=5MiB cuda:0" || !maps.Equal(over.Labels, within.Labels) {
		t.Errorf("%v, then %v", over.Labels, within.Labels)
	}
	if now := time.Unix(1000, 0); !over.EndsAt.IsZero() || !within.EndsAt.Equal(now) {
		t.Errorf("it ends %v, then %v", over.EndsAt, within.EndsAt)
	}
}

// TestAnAlertIsSentAgainWhileItStands: Alertmanager takes what it hears no more of for over.
func TestAnAlertIsSentAgainWhileItStands(t *testing.T) {
	t.Parallel()
	type sent struct {
		Labels map[string]string
		EndsAt time.Time
	}
	posts := make(chan []sent, 1000)
	var refuse atomic.Bool
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var alerts []sent
		if err := json.NewDecoder(r.Body).Decode(&alerts); err != nil {
			t.Error(err)
		}
		if refuse.Load() {
			w.WriteHeader(http.StatusBadRequest)
		}
		posts <- alerts
	}))
	defer service.Close()
	var h heard
	d := watch.NewDeliverer([]watch.Receiver{&watch.Alertmanager{URL: address(t, service.URL), Every: 20 * time.Millisecond}}, nil, h.failed)
	for _, name := range []string{"first", "second"} {
		e := event(report.LiveLeak)
		e.Fingerprint = name
		d.Deliver(e, report.Folder{})
	}
	both := func() bool {
		got := <-posts
		return len(got) == 2 && got[0].Labels["fingerprint"] == "first" && got[1].Labels["fingerprint"] == "second"
	}
	for seen := 0; seen < 3; {
		if both() {
			seen++
		}
	}
	refuse.Store(true)
	for range 5 {
		<-posts
	}
	refuse.Store(false)
	for _, name := range []string{"first", "second"} {
		e := event(report.LiveOver)
		e.Fingerprint = name
		d.Deliver(e, report.Folder{})
	}
	for ended := false; !ended; {
		got := <-posts
		ended = got[0].Labels["fingerprint"] == "second" && !got[0].EndsAt.IsZero()
	}
	time.Sleep(100 * time.Millisecond)
	if n := len(posts); n > 0 {
		t.Errorf("%d are sent of what is over", n)
	}
	d.Close(time.Minute)
	if len(h.said) != 1 || !strings.Contains(h.said[0], "400") {
		t.Errorf("what fails again and again is said once: %q", h.said)
	}
}

// TestASecretOfAnAddressIsNotSaid: a webhook's path is its key.
func TestASecretOfAnAddressIsNotSaid(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no\x1b[31m", http.StatusForbidden) }))
	defer service.Close()
	var h heard
	d := watch.NewDeliverer([]watch.Receiver{
		watch.Webhook{URL: address(t, service.URL+"/secret-key")},
		&watch.Alertmanager{URL: address(t, "http://127.0.0.1:1/secret-key")},
	}, nil, h.failed)
	d.Deliver(event(report.LiveOver), report.Folder{})
	d.Close(time.Minute)
	all := strings.Join(h.said, "\n")
	if len(h.said) != 2 || strings.Contains(all, "secret") || strings.Contains(all, "\x1b") || !strings.Contains(all, "403") || !strings.Contains(all, "3 tries") {
		t.Errorf("%q", h.said)
	}
}

// TestASlowReceiverHoldsNothingUp: what waits for it is bounded, and so is the end.
func TestASlowReceiverHoldsNothingUp(t *testing.T) {
	t.Parallel()
	var h heard
	d := watch.NewDeliverer([]watch.Receiver{watch.Command{Line: "sleep 100", Output: io.Discard}}, nil, h.failed)
	began := time.Now()
	for range 100 {
		d.Deliver(event(report.LiveLeak), report.Folder{})
	}
	d.Close(time.Millisecond)
	if taken := time.Since(began); taken > 30*time.Second {
		t.Errorf("it took %v", taken)
	}
	if !strings.Contains(strings.Join(h.said, "\n"), "left out") {
		t.Errorf("%q", h.said)
	}
}

// TestAnEndThatComesTooSoonIsNoError: what has no more time is not delivered, and no word of the network's is said of it.
func TestAnEndThatComesTooSoonIsNoError(t *testing.T) {
	t.Parallel()
	hangs, over := make(chan bool, 1), make(chan bool)
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hangs <- true; <-over }))
	defer service.Close()
	defer close(over)
	var h heard
	d := watch.NewDeliverer([]watch.Receiver{watch.Webhook{URL: address(t, service.URL)}}, nil, h.failed)
	d.Deliver(event(report.LiveLeak), report.Folder{})
	<-hangs
	d.Close(time.Millisecond)
	if len(h.said) != 1 || !strings.HasSuffix(h.said[0], ": 1 alarm not delivered") {
		t.Errorf("%q", h.said)
	}
}

func TestACommandIsRunForALeakAlone(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var h heard
	d := watch.NewDeliverer([]watch.Receiver{watch.Command{Line: "cat; exit 3", Output: &out}}, nil, h.failed)
	d.Deliver(event(report.LiveOver), report.Folder{})
	d.Deliver(event(report.LiveLeak), report.Folder{})
	d.Close(time.Minute)
	if !strings.HasPrefix(out.String(), `{"schema_version":1,"event":"leak",`) || strings.Count(out.String(), "\n") != 1 || len(h.said) != 1 || h.said[0] != "--on-leak: exit status 3" {
		t.Errorf("%q; %q", out.String(), h.said)
	}
}

// TestAnAlarmIsNotSentElsewhere: followed, a 302 becomes a GET without the alarm, and looks as if it had arrived.
func TestAnAlarmIsNotSentElsewhere(t *testing.T) {
	t.Parallel()
	var code int
	var elsewhere atomic.Bool
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			elsewhere.Store(true)
			return
		}
		http.Redirect(w, r, "/elsewhere", code)
	}))
	defer service.Close()
	for _, code = range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		var h heard
		d := watch.NewDeliverer([]watch.Receiver{watch.Webhook{URL: address(t, service.URL+"/hook")}}, nil, h.failed)
		d.Deliver(event(report.LiveLeak), report.Folder{})
		d.Close(time.Minute)
		if elsewhere.Load() || len(h.said) != 1 || !strings.Contains(h.said[0], strconv.Itoa(code)) {
			t.Errorf("%d: sent elsewhere %v; %q", code, elsewhere.Load(), h.said)
		}
	}
}
