package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

func TestViewServesPprofsPagesBelowItsKeyAlone(t *testing.T) {
	memory := &report.Profile{Growth: true, Title: "growth", Samples: []report.Sample{{
		Frames: []snapshot.Frame{{Function: "Pyramid.forward</script><b>", File: "model.py", Line: 88}},
		After:  diff.Tally{Blocks: 1, Bytes: 4096},
	}}}
	var encoded bytes.Buffer
	if err := report.Pprof(&encoded, memory); err != nil {
		t.Fatal(err)
	}
	parsed, err := profile.ParseData(encoded.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	site, err := newPprofSite(parsed, pprofPages, func(s string) { said = append(said, s) })
	if err != nil {
		t.Fatal(err)
	}
	const address = "127.0.0.1:4711"
	handler := guarded(site, address, "KEY")
	for _, c := range []struct {
		name, method, host, path string
		code                     int
		want                     string
	}{
		{"the flamegraph", "GET", address, "/KEY/flamegraph", 200, "Pyramid.forward"},
		{"the top list", "GET", address, "/KEY/top", 200, "Pyramid.forward"},
		{"the profile itself", "GET", address, "/KEY/download", 200, "\x1f\x8b"},
		{"the root leads to the flamegraph", "GET", address, "/KEY/", 301, ""},
		{"no key", "GET", address, "/flamegraph", 404, ""},
		{"another key", "GET", address, "/KEZ/flamegraph", 404, ""},
		{"a longer key", "GET", address, "/KEYflamegraph", 404, ""},
		{"another name of this machine", "GET", "evil.example", "/KEY/flamegraph", 404, ""},
		{"settings are not saved", "GET", address, "/KEY/saveconfig?config=x", 404, ""},
		{"settings are not deleted", "GET", address, "/KEY/deleteconfig?config=x", 404, ""},
		{"no source file", "GET", address, "/KEY/source?f=.", 404, ""},
		{"no list of one", "GET", address, "/KEY/weblist?f=.", 404, ""},
		{"no program to disassemble", "GET", address, "/KEY/disasm", 404, ""},
		{"nothing to write", "POST", address, "/KEY/flamegraph", 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), c.method, "http://"+c.host+c.path, http.NoBody)
			got := httptest.NewRecorder()
			handler.ServeHTTP(got, request)
			if got.Code != c.code || !strings.Contains(got.Body.String(), c.want) {
				t.Errorf("code %d, want %d with %q in\n%.300s", got.Code, c.code, c.want, got.Body)
			}
			if strings.Contains(got.Body.String(), "forward</script>") {
				t.Error("a name is markup")
			}
			if got.Header().Get("Referrer-Policy") != "no-referrer" || !strings.Contains(got.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'") {
				t.Errorf("headers %v", got.Header())
			}
		})
	}
	if len(said) > 0 {
		t.Errorf("pprof said %q", said)
	}
}
