package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

func TestGrowthIsSentToAProfileStore(t *testing.T) {
	t.Setenv("GITHUB_SHA", "4f2a91c")
	t.Setenv("MEMDIAG_PUSH_AUTHORIZATION", "Bearer token")
	dir := filepath.Join(t.TempDir(), "my-run")
	if code := runCommand(t, "record", "-q", "--workload", "L30", "--steps", "8", "--every", "2", "-o", dir); code != exitFine {
		t.Fatalf("record ended with %d", code)
	}
	fails := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fails {
			http.Error(w, "no\x1bsuch tenant", http.StatusForbidden)
			return
		}
		if name := r.URL.Query().Get("name"); name != "memdiag{commit=4f2a91c,run=my-run,team=vision}" || r.Header.Get("Authorization") != "Bearer token" {
			t.Errorf("%s, %v", name, r.Header)
		}
		f, _, err := r.FormFile("profile")
		if err != nil {
			t.Error(err)
			return
		}
		text, _ := io.ReadAll(f)
		p, err := profile.ParseData(text)
		if err != nil || len(p.Sample) == 0 || p.SampleType[1].Type != "growth_bytes" {
			t.Errorf("%v, %v", p, err)
			return
		}
		for _, s := range p.Sample {
			if s.Value[1] <= 0 {
				t.Errorf("a sample of %v", s.Value)
			}
		}
	}))
	defer server.Close()
	to, _ := url.Parse(server.URL)
	to.User = url.UserPassword("me", "hunter2")
	var out, said bytes.Buffer
	if code := run([]string{"flame", dir, "--push", to.String(), "--label", "team=vision"}, nil, &out, &said); code != exitFine || !strings.Contains(said.String(), "memdiag: sent ") || strings.Contains(said.String(), "hunter2") || out.Len() > 0 {
		t.Errorf("code %d: %s%s", code, &out, &said)
	}
	fails = true
	said.Reset()
	if code := run([]string{"flame", dir, "--push", to.String()}, nil, &out, &said); code != exitOwn || !strings.Contains(said.String(), `the server answered 403 Forbidden: no\x1bsuch tenant`) || strings.Contains(said.String(), "hunter2") {
		t.Errorf("code %d: %s", code, &said)
	}
	for _, wrong := range [][]string{{"--push", "ftp://x"}, {"--push", server.URL, "--rate"}, {"--push", server.URL, "--label", "x"}} {
		if code := run(append([]string{"flame", dir}, wrong...), nil, io.Discard, io.Discard); code != exitUsage {
			t.Errorf("%q: code %d", wrong, code)
		}
	}
}
