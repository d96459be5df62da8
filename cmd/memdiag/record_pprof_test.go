//go:build unix && !race

// The race detector would only make the leak slow.

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// sessions is what the server of the test below forgets to end.
type sessions struct{ open [][]byte }

func (s *sessions) login() (line int) {
	_, _, line, _ = runtime.Caller(0)
	s.open = append(s.open, make([]byte, 1<<20)) // leaks; it stands one line below
	return line + 1
}

func TestTheGuiltyLineOfAGoServerIsFirst(t *testing.T) {
	var held sessions
	line, profiles := held.login(), 0
	enough := filepath.Join(t.TempDir(), "enough")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 4 {
			held.login()
		}
		pprof.Handler("heap").ServeHTTP(w, r)
		if profiles++; profiles == 16 {
			_ = os.WriteFile(enough, nil, 0o666) // else the command goes on, and the test ends by its timeout
		}
	}))
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "run")
	var out, said bytes.Buffer
	if code := run([]string{"record", "--pprof", server.URL, "--every", "100ms", "-o", dir, "--",
		"sh", "-c", `while [ ! -e "$0" ]; do sleep 0.1; done`, enough}, nil, &out, &said); code != exitFine {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	out.Reset()
	if code := run([]string{"diff", "--format", "json", dir}, nil, &out, &said); code != exitFine {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	var result struct{ Findings []finding }
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Findings) == 0 {
		t.Fatalf("no finding: %s", &said)
	}
	first := result.Findings[0]
	f := first.Frames[0]
	if first.Verdict != "leak" || filepath.Base(f.File) != "record_pprof_test.go" || f.Line != line {
		t.Errorf("first is %s at %v, want line %d", first.Verdict, first.Frames, line)
	}
}
