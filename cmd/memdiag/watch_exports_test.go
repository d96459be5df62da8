package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/watch"
)

func TestMetricsAreReadWhileALookIsUnderWay(t *testing.T) {
	e := &exports{listen: "127.0.0.1:0"}
	server := httptest.NewServer(e.site("127.0.0.1", true))
	defer server.Close()
	run := &snapshot.Run{Snapshots: []*snapshot.Snapshot{{Devices: []snapshot.Device{{Kind: snapshot.CUDA}}}}}
	look := &watch.Look{Time: time.Now(), Ranks: []watch.Rank{{Run: run}}}
	if err := e.put(&environment{}, "run", look); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if status, body := get(t, server.URL+"/metrics", ""); status != http.StatusOK || !strings.Contains(body, "memdiag_allocated_bytes{") {
					t.Errorf("%d: %s", status, body)
					return
				}
			}
		})
	}
	for range 50 {
		if err := e.put(&environment{}, "run", look); err != nil {
			t.Error(err)
		}
	}
	close(done)
	readers.Wait()
}

func TestMetricsForThisMachineAloneAnswerToItsNamesAlone(t *testing.T) {
	e := new(exports)
	alone, open := httptest.NewServer(e.site("node7", true)), httptest.NewServer(e.site("", false))
	defer alone.Close()
	defer open.Close()
	for host, want := range map[string]int{
		"": http.StatusOK, "localhost:9760": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:9760": http.StatusOK, "node7:9760": http.StatusOK,
		"evil.example": http.StatusForbidden, "192.0.2.7:9760": http.StatusForbidden, "localhost.evil.example:9760": http.StatusForbidden,
	} {
		if got, _ := get(t, alone.URL+"/metrics", host); got != want {
			t.Errorf("Host %q: %d, not %d", host, got, want)
		}
		if got, _ := get(t, open.URL+"/metrics", host); got != http.StatusOK {
			t.Errorf("served to all, Host %q: %d", host, got)
		}
	}
	if got, _ := get(t, alone.URL+"/other", ""); got != http.StatusNotFound {
		t.Errorf("another page: %d", got)
	}
}

func get(t *testing.T, url, host string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(text)
}
