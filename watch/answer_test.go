package watch

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestAnAnswerIsSaidPlainly: one without words, one that does not come, and one in several lines.
func TestAnAnswerIsSaidPlainly(t *testing.T) {
	over := make(chan bool)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fails":
			w.WriteHeader(http.StatusInternalServerError)
		case "/says":
			http.Error(w, "no room\ntry later", http.StatusInsufficientStorage)
		default:
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
			var cancel func()
			ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
		}
		again, err := postOnce(ctx, service.URL+path, []byte("{}"))
		if !again || err == nil || err.Error() != want {
			t.Errorf("%s: %v, again %v; want %s", path, err, again, want)
		}
	}
}
