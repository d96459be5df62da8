//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

const hunter = "hunter2hunter2"

// lacksSecret fails where anything that memdiag said, or a file below a folder, has the secret,
// and where a file or folder is open to others.
func lacksSecret(t *testing.T, dir string, said ...*bytes.Buffer) {
	t.Helper()
	for _, b := range said {
		if bytes.Contains(b.Bytes(), []byte("hunter2")) {
			t.Errorf("it is said: %s", b)
		}
	}
	if dir == "" {
		return
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		if e.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("hunter2")) {
			t.Errorf("%s has it", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// memdiagIn runs memdiag and returns what it said.
func memdiagIn(t *testing.T, args ...string) (code int, out, said *bytes.Buffer) {
	t.Helper()
	out, said = new(bytes.Buffer), new(bytes.Buffer)
	code = run(args, strings.NewReader(""), out, said)
	return code, out, said
}

func commandOf(t *testing.T, dir string) (info snapshot.Info, text string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, rundir.InfoName))
	if err == nil {
		err = json.Unmarshal(b, &info)
	}
	if err != nil {
		t.Fatal(err)
	}
	return info, string(b)
}

func TestSecretsOfACommandAreNotRecorded(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	code, out, said := memdiagIn(t, "record", "--every", "100ms", "-o", dir, "--",
		"env", "HF_TOKEN="+hunter, "sh", "-c", "sleep 0.7; : --password "+hunter+"; exit 3", "sh", "--token", hunter, "--api-key="+hunter, "https://bob:"+hunter+"@host/")
	if code != 3 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	lacksSecret(t, dir, out, said)
	info, _ := commandOf(t, dir)
	const want = "env HF_TOKEN=*** sh -c sleep 0.7; : --password ***; exit 3 sh --token *** --api-key=*** https://***@host/"
	if got := strings.Join(info.Command, " "); got != want {
		t.Errorf("the command is %s, want %s", got, want)
	}
	code, out, said = memdiagIn(t, "record", "--", "HF_TOKEN="+hunter, "python", "train.py")
	if code != exitUsage || !strings.Contains(said.String(), "HF_TOKEN=***") {
		t.Errorf("no such command: %d, %s", code, said)
	}
	lacksSecret(t, "", out, said)
}

func TestACommandIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{{"record"}, {"gate", "--double", "--steps", "5"}} {
		dir := filepath.Join(t.TempDir(), "run")
		_, out, said := memdiagIn(t, append(words, "--no-command", "--every", "100ms", "-o", dir, "--", "sh", "-c", "sleep 0.7", "hunter2", "{steps}")...)
		lacksSecret(t, dir, out, said)
		if words[0] == "gate" {
			dir = filepath.Join(dir, "steps-5")
		}
		if info, text := commandOf(t, dir); info.Command == nil || len(info.Command) > 0 || strings.Contains(text, "sleep") {
			t.Errorf("%s", text)
		}
	}
}

func TestSecretsOfAnOldRunAreNotShown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if code, _, said := memdiagIn(t, "record", "-w", "L30", "--steps", "20", "--every", "5", "-o", dir); code != exitFine {
		t.Fatalf("exit code %d: %s", code, said)
	}
	info, _ := commandOf(t, dir)
	code := 1
	info.Command, info.Notes, info.ExitCode = []string{"python", "train.py", "--token=" + hunter}, []string{"no answer of http://bob:" + hunter + "@host/"}, &code
	text, err := json.Marshal(info)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, rundir.InfoName), text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	results := t.TempDir()
	if err := os.WriteFile(filepath.Join(results, "plain"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	plain, err := os.Stat(filepath.Join(results, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"diff", dir}, {"diff", "--format", "json", dir}, {"diff", "--format", "md", dir}, {"show", filepath.Join(dir, "snapshot_20")},
		{"gate", dir, "--junit", "1.xml", "--sarif", "2.json", "--json", "3.json", "--markdown", "4.md", "--codequality", "5.json"},
		{"report", "-o", "6.html", dir}, {"plot", "-o", "7.svg", dir}, {"flame", "-o", "8.svg", dir}, {"verify", dir, dir},
	} {
		for i, a := range args {
			if a[0] >= '1' && a[0] <= '9' {
				args[i] = filepath.Join(results, a)
			}
		}
		_, out, said := memdiagIn(t, args...)
		for _, b := range []*bytes.Buffer{out, said} {
			if strings.Contains(b.String(), "hunter2") {
				t.Errorf("%q says it: %s", args, b)
			}
		}
	}
	files, err := os.ReadDir(results)
	if err != nil || len(files) != 9 {
		t.Errorf("%d results, %v", len(files), err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(filepath.Join(results, f.Name())); err != nil || bytes.Contains(text, []byte("hunter2")) {
			t.Errorf("%s has it, %v", f.Name(), err)
		}
		if info, err := f.Info(); err != nil || info.Mode() != plain.Mode() {
			t.Errorf("%s: a result does not obey the umask: %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

func TestSecretsOfAURLAreNotRecorded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		switch {
		case name != "bob" || password != hunter || r.URL.Query().Get("token") != hunter:
			w.WriteHeader(http.StatusTeapot) // the request itself has them
		case strings.HasPrefix(r.URL.Path, "/away"):
			http.Redirect(w, r, "http://localhost:1/?token="+hunter, http.StatusFound)
		case r.URL.Path == "/text":
			_, _ = w.Write([]byte("no profile"))
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, path := range []string{"/", "/away", "/text"} {
		address := "http://bob:" + hunter + "@" + host + path + "?token=" + hunter + "&debug=0"
		for _, command := range [][]string{nil, {"--", "sleep", "0.5"}} {
			dir := filepath.Join(t.TempDir(), "run")
			_, out, said := memdiagIn(t, append([]string{"record", "--pprof", address, "--every", "100ms", "-o", dir}, command...)...)
			lacksSecret(t, dir, out, said)
			if strings.Contains(said.String(), "teapot") || said.Len() == 0 {
				t.Errorf("the server was not sent what it needs: %s", said)
			}
		}
	}
	for _, address := range []string{"http://bob:" + hunter + "@host:port/", "ftp://bob:" + hunter + "@host/", "bob:" + hunter + "@%zz", "http://" + hunter + "@host:1x/?token=" + hunter} {
		code, out, said := memdiagIn(t, "record", "--pprof", address)
		if code != exitUsage {
			t.Errorf("exit code %d", code)
		}
		lacksSecret(t, "", out, said)
	}
}
