//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"
)

// profileOf is a profile whose stacks name files.
func profileOf(files ...string) *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "space", Unit: "bytes"}}}
	for i, file := range files {
		f := &profile.Function{ID: uint64(i + 1), Name: "step", Filename: file}
		l := &profile.Location{ID: uint64(i + 1), Line: []profile.Line{{Function: f, Line: 1}}}
		p.Function, p.Location = append(p.Function, f), append(p.Location, l)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: []int64{1 << 20}})
	}
	return p
}

// sourceOf is what the page of source lines shows of a profile.
func sourceOf(t *testing.T, p *profile.Profile, folders ...string) (code int, body string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	page, end, err := sourceSite(p, folders, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	got := httptest.NewRecorder()
	done := make(chan bool)
	go func() {
		defer close(done)
		page.ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+sourcePage+"?f=.", http.NoBody))
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the page waits for a pipe")
	}
	end()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return got.Code, got.Body.String()
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A snapshot that names /etc/passwd had it shown, and one that names a pipe hung.
func TestSourceIsServedBelowTheFoldersAlone(t *testing.T) {
	base := t.TempDir()
	dir, outside := filepath.Join(base, "project"), filepath.Join(base, "outside")
	for _, d := range []string{dir, outside, filepath.Join(dir, "sub")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	secret := write(t, filepath.Join(outside, "secret.py"), "SECRET_LINE\n")
	plain := write(t, filepath.Join(dir, "train.py"), "TRAIN_LINE <b>\n")
	write(t, filepath.Join(dir, "sub", "relative.py"), "RELATIVE_LINE\n")
	large := write(t, filepath.Join(dir, "large.py"), "LARGE_LINE\n"+strings.Repeat("x = 1\n", maxSource/6))
	pipe, linked, inner, away := filepath.Join(dir, "pipe.py"), filepath.Join(dir, "linked.py"), filepath.Join(dir, "inner.py"), filepath.Join(dir, "away")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{linked: secret, inner: plain, away: outside} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(outside) // pprof looks for files in the current folder, and above
	names := []string{
		"/etc/passwd", "/dev/zero", secret, pipe, linked, large, filepath.Join(away, "secret.py"), dir + "/../outside/secret.py", "../outside/secret.py",
		"secret.py", "/gone/outside/secret.py", "/proc/self/cwd/secret.py", "outside/secret.py", "", "/", ".", dir, strings.Repeat("a/", 3000), "a\x00b",
	}
	code, body := sourceOf(t, profileOf(slices.Concat(names, []string{plain, inner, "sub/relative.py"})...), dir)
	if code != http.StatusOK {
		t.Fatalf("code %d: %.300s", code, body)
	}
	for _, secret := range []string{"SECRET_LINE", "root:", "LARGE_LINE"} {
		if strings.Contains(body, secret) {
			t.Errorf("%s is shown", secret)
		}
	}
	for _, shown := range []string{"TRAIN_LINE &lt;b&gt;", "RELATIVE_LINE", plain} {
		if !strings.Contains(body, shown) {
			t.Errorf("%s is not shown", shown)
		}
	}
	if strings.Contains(body, "memdiag-view-") {
		i := strings.Index(body, "memdiag-view-")
		t.Errorf("the names of copies are shown: %s", body[max(0, i-200):i+100])
	}
	if code, body := sourceOf(t, profileOf(plain)); code != http.StatusForbidden || strings.Contains(body, "TRAIN_LINE") || !strings.Contains(body, "--source") {
		t.Errorf("without a folder: %d, %s", code, body)
	}
	if _, body := sourceOf(t, profileOf(plain), filepath.Join(dir, "sub"), away); strings.Contains(body, "TRAIN_LINE") {
		t.Error("a file of another folder is shown")
	}
	if _, body := sourceOf(t, profileOf(secret), away); !strings.Contains(body, "SECRET_LINE") {
		t.Error("a folder that was asked for by a link has nothing")
	}
	for _, none := range []string{filepath.Join(dir, "none"), plain} {
		if _, _, err := sourceSite(profileOf(plain), []string{none}, nil); exitCode(err) != exitUsage {
			t.Errorf("%s: %v", none, err)
		}
	}
}
