package watch

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"
)

// written is what a request of remote write has: its strings and the last number, found without the writer's code.
func written(t *testing.T, message []byte) (texts []string, number float64) {
	t.Helper()
	for len(message) > 0 {
		_, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			t.Fatalf("no tag: %x", message)
		}
		message = message[n:]
		if kind == protowire.BytesType {
			inner, n := protowire.ConsumeBytes(message)
			if n < 0 {
				t.Fatalf("no bytes: %x", message)
			}
			if len(inner) > 0 && inner[0] > ' ' {
				texts = append(texts, string(inner))
			} else {
				more, x := written(t, inner)
				texts = append(texts, more...)
				number = max(number, x)
			}
			message = message[n:]
			continue
		}
		if kind == protowire.Fixed64Type {
			bits, _ := protowire.ConsumeFixed64(message)
			number = math.Float64frombits(bits)
		}
		n = protowire.ConsumeFieldValue(1, kind, message)
		if n < 0 {
			t.Fatalf("no value: %x", message)
		}
		message = message[n:]
	}
	return texts, number
}

func known() []*dto.MetricFamily {
	name, label, value, number, empty, none := "memdiag_site_leaks", "where", "train.py:8", 1.0, "rank", ""
	return []*dto.MetricFamily{{Name: &name, Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{{
		Label: []*dto.LabelPair{{Name: &label, Value: &value}, {Name: &empty, Value: &none}}, Gauge: &dto.Gauge{Value: &number},
	}}}}
}

func TestPushSendsWhatIsKnownAgainAndAgain(t *testing.T) {
	got := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		message, err := snappy.Decode(nil, body)
		if err != nil {
			t.Error(err)
		}
		texts, number := written(t, message)
		if number != 1 {
			t.Errorf("the value is %v", number)
		}
		got <- strings.Join([]string{
			r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("X-Prometheus-Remote-Write-Version"), r.Header.Get("Authorization"), strings.Join(texts, " "),
		}, "|")
	}))
	defer server.Close()
	pusher := start(t, server.URL, nil)
	for range 3 {
		if text := <-got; text != "/api/v1/write|application/x-protobuf|0.1.0|Bearer abc|__name__ memdiag_site_leaks where train.py:8" {
			t.Errorf("got %s", text)
		}
	}
	pusher.Close()
}

func start(t *testing.T, address string, failed func(string)) *Pusher {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if failed == nil {
		failed = func(what string) { t.Error(what) }
	}
	pusher := &Pusher{URL: to, Authorization: "Bearer abc", Every: 10 * time.Millisecond, Known: known, Failed: failed}
	if err := pusher.Start(); err != nil {
		t.Fatal(err)
	}
	return pusher
}

func TestPushSaysOnceWhatDoesNotArriveAndHoldsNothingUp(t *testing.T) {
	release := make(chan struct{})
	for name, answer := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no \x1b[31mroom", http.StatusBadRequest) },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			for range 10_000 {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					return
				}
			}
		},
		"hangs": func(http.ResponseWriter, *http.Request) { <-release },
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			defer server.Close()
			var said []string
			var lock sync.Mutex
			pusher := start(t, strings.Replace(server.URL, "http://", "http://user:secret@", 1)+"/push?token=secret", func(what string) {
				lock.Lock()
				defer lock.Unlock()
				said = append(said, what)
			})
			time.Sleep(200 * time.Millisecond)
			begun := time.Now()
			pusher.Close()
			if took := time.Since(begun); took > interruptedPush+2*time.Second {
				t.Errorf("the end took %v", took)
			}
			if name == "hangs" {
				close(release)
			}
			if len(said) != 1 || strings.Contains(said[0], "secret") || strings.Contains(said[0], "\x1b") || len(said[0]) > 2000 {
				t.Errorf("said %q", said)
			}
		})
	}
}
