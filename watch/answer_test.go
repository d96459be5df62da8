package watch

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// ending is a context whose time is over at an event.
type ending struct {
	context.Context
	event chan struct{}
}

func (e ending) Done() <-chan struct{} { return e.event }

func (e ending) Err() error {
	select {
	case <-e.event:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestAnAnswerIsSaidPlainly: one without words, one that does not come, and one in several lines.
func TestAnAnswerIsSaidPlainly(t *testing.T) {
	over, entered := make(chan bool), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fails":
			w.WriteHeader(http.StatusInternalServerError)
		case "/says":
			http.Error(w, "no room\ntry later", http.StatusInsufficientStorage)
		default:
			close(entered)
			<-over
		}
	}))
	defer service.Close()
	defer close(over)
	for path, want := range map[string]string{
		"/fails": "it answers 500 Internal Server Error",
		"/says":  `it answers 507 Insufficient Storage no room\ntry later`,
		"/hangs": "no answer within 10s",
	} {
		ctx := t.Context()
		if path == "/hangs" {
			ctx = ending{ctx, entered}
		}
		again, err := postOnce(ctx, service.URL+path, []byte("{}"))
		if !again || err == nil || err.Error() != want {
			t.Errorf("%s: %v, again %v; want %s", path, err, again, want)
		}
	}
}

// late answers when the time for it is just over, and notes whether its answer was closed.
type late struct {
	io.Reader
	closed bool
}

func (l *late) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return &http.Response{StatusCode: http.StatusOK, Body: l}, nil
}

func (l *late) Close() error {
	l.closed = true
	return nil
}

// TestAnAnswerThatCameCounts though the time is over when it is looked at: otherwise the alarm would be sent twice.
func TestAnAnswerThatCameCounts(t *testing.T) {
	l := &late{Reader: strings.NewReader("")}
	usual := http.DefaultTransport
	http.DefaultTransport = l
	defer func() { http.DefaultTransport = usual }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if again, err := postOnce(ctx, "http://service.example", []byte("{}")); again || err != nil || !l.closed {
		t.Errorf("%v, again %v, closed %v", err, again, l.closed)
	}
}
