//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTheKeyOfViewStandsInNoCommandLine: other users see the words of xdg-open.
func TestTheKeyOfViewStandsInNoCommandLine(t *testing.T) {
	bin, temporary := t.TempDir(), t.TempDir()
	opened := filepath.Join(bin, "opened")
	script := "#!/bin/sh\necho \"$@\" >" + opened + ".part\nls -ld \"$(dirname \"$1\")\" \"$1\" >>" + opened + ".part\ncat \"$1\" >>" + opened + ".part\nmv " + opened + ".part " + opened + "\n"
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", temporary)
	env, _, _ := newTestEnvironment()
	const url = "http://127.0.0.1:4711/SECRETKEY/"
	end := env.browse(t.Context(), url)
	var text []byte
	for range 500 {
		var err error
		if text, err = os.ReadFile(opened); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	end()
	lines := strings.SplitN(string(text), "\n", 4)
	if len(lines) < 4 {
		t.Fatalf("opened %q", text)
	}
	if strings.Contains(lines[0], "SECRETKEY") || !strings.HasPrefix(lines[0], temporary) {
		t.Errorf("the words are %s", lines[0])
	}
	if !strings.HasPrefix(lines[1], "drwx------") || !strings.HasPrefix(lines[2], "-rw-------") {
		t.Errorf("others may read\n%s\n%s", lines[1], lines[2])
	}
	if !strings.Contains(lines[3], `content="0; url=`+url+`"`) {
		t.Errorf("the page leads nowhere: %s", lines[3])
	}
	if left := names(t, temporary); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
