package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"encoding/base64"
	bytesOf "encoding/binary"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/record/recordtest"
)

func TestVersionsInPythonsForm(t *testing.T) {
	for _, c := range []struct{ stamped, want string }{
		{"v1.2.3", "1.2.3"},
		{"v1.2.3+dirty", "1.2.3+dirty"},
		{"v1.2.3-rc.1", "1.2.3rc1"},
		{"v1.2.3-alpha2", "1.2.3a2"},
		{"v1.2.3-beta.10+dirty", "1.2.3b10+dirty"},
		{"v0.0.0-20261123200338-08f6ebc84eaa", "0.0.0.dev20261123200338+g08f6ebc84eaa"},
		{"v0.4.1-0.20261123200338-08f6ebc84eaa+dirty", "0.4.1.dev20261123200338+g08f6ebc84eaa.dirty"},
		{"v0.4.0-rc.1.0.20261123200338-08f6ebc84eaa", "0.4.0.dev20261123200338+g08f6ebc84eaa"},
		{"(devel)", "0.0.0.dev0+unknown"},
		{"", "0.0.0.dev0+unknown"},
		{"v1.2", ""},
		{"v1.2.3-final", ""},
		{"v1.2.3\nName: other", ""},
	} {
		if got, err := pythonVersion(c.stamped); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q: %q, %v; want %q", c.stamped, got, err, c.want)
		}
	}
}

func TestTimesAreOfTheVariableOrTheCommit(t *testing.T) {
	for _, c := range []struct{ epoch, commit, want string }{
		{"", "2026-11-23T20:03:38+01:00", "2026-11-23T19:03:38Z"},
		{"1700000000", "2026-11-23T20:03:38Z", "2023-11-14T22:13:20Z"},
		{"0", "", "1980-01-01T00:00:00Z"},
		{"", "", "1980-01-01T00:00:00Z"},
		{"soon", "", ""},
		{"", "yesterday", ""},
	} {
		got, err := timeOf(c.epoch, c.commit)
		if (err != nil) != (c.want == "") || err == nil && got.Format(time.RFC3339) != c.want {
			t.Errorf("%q, %q: %v, %v; want %s", c.epoch, c.commit, got, err, c.want)
		}
	}
}

// aBinary is no program, but of a known content.
func aBinary(t *testing.T, name string) *binary {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memdiag")
	if err := os.WriteFile(path, []byte("the program"), 0o666); err != nil {
		t.Fatal(err)
	}
	of, ok := targetOf(name)
	if !ok {
		t.Fatalf("no target %s", name)
	}
	t.Chdir("..") // where the licences are
	return &binary{target: of, path: path, version: "v1.2.3", time: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)}
}

func TestAWheelListsAllThatIsInItWithItsSums(t *testing.T) {
	b := aBinary(t, "linux-arm64")
	name, content, err := b.wheel()
	if err != nil || name != "memdiag-1.2.3-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.whl" {
		t.Fatal(name, err)
	}
	files := make(map[string][]byte)
	read, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range read.File {
		if want := os.FileMode(0o644); f.Mode() != want && f.Name != "memdiag-1.2.3.data/scripts/memdiag" || !f.Modified.Equal(b.time) {
			t.Errorf("%s: %v of %v", f.Name, f.Mode(), f.Modified)
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	if f := read.File[slices.IndexFunc(read.File, func(f *zip.File) bool { return strings.Contains(f.Name, "/scripts/") })]; f.Mode() != 0o755 || string(files[f.Name]) != "the program" {
		t.Errorf("the program: %v %q", f.Mode(), files[f.Name])
	}
	for file, want := range map[string]string{
		"METADATA":         "\nRequires-Python: >=3.10\nDescription-",
		"WHEEL":            "Tag: py3-none-manylinux_2_17_aarch64\nTag: py3-none-manylinux2014_aarch64\n",
		"entry_points.txt": "memdiag.pytest = memdiag.pytest",
		"licenses/NOTICE":  "gonum",
	} {
		if !strings.Contains(string(files["memdiag-1.2.3.dist-info/"+file]), want) {
			t.Errorf("%s: want %q in %.300s", file, want, files["memdiag-1.2.3.dist-info/"+file])
		}
	}
	const list = "memdiag-1.2.3.dist-info/RECORD"
	rows, err := csv.NewReader(bytes.NewReader(files[list])).ReadAll()
	if err != nil || len(rows) != len(files) {
		t.Fatalf("%d rows for %d files: %v", len(rows), len(files), err)
	}
	for _, row := range rows {
		text, ok := files[row[0]]
		sum := sha256.Sum256(text)
		want := []string{row[0], "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]), strconv.Itoa(len(text))}
		if row[0] == list {
			want = []string{list, "", ""}
		}
		if !ok || !slices.Equal(row, want) {
			t.Errorf("%q, want %q", row, want)
		}
	}
	unpacked, err := record.Package(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	agent, err := os.ReadDir(filepath.Join(unpacked, "memdiag"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range agent {
		text, err := os.ReadFile(filepath.Join(unpacked, "memdiag", e.Name()))
		if err != nil || !bytes.Equal(text, files["memdiag/"+e.Name()]) {
			t.Errorf("%s is another than the recorder's: %v", e.Name(), err)
		}
	}
	if _, again, err := b.wheel(); err != nil || !bytes.Equal(again, content) {
		t.Errorf("a second wheel is another: %v", err)
	}
}

// pip passes over a source distribution that needs a newer Python, and names no reason: it has to show the refusal.
func TestTheSourceDistributionIsForAnyPython(t *testing.T) {
	b := aBinary(t, "linux-amd64")
	_, source, err := b.source()
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil || !bytes.Contains(text, []byte("Version: 1.2.3\n")) || bytes.Contains(text, []byte("Requires-Python")) {
		t.Errorf("%v: %s", err, text)
	}
	// A pip before 10 runs setup.py; it knows no other backend.
	if !bytes.Contains(text, []byte("/setup.py\x00")) || bytes.Count(text, []byte(refusal)) != 2 {
		t.Errorf("what an old pip runs does not refuse: %s", text)
	}
}

func TestAWheelThatIsTooLargeIsRefused(t *testing.T) {
	b := aBinary(t, "linux-amd64")
	noise := make([]byte, mostWheel) // which nothing makes smaller
	state := uint32(1)
	for i := range noise {
		state = state*1664525 + 1013904223
		noise[i] = byte(state >> 24)
	}
	if err := os.WriteFile(b.path, noise, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.wheel(); err == nil {
		t.Error("no error")
	}
}

func TestAProgramForAnotherMachineIsRefused(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("this test knows the header of its own program on linux-amd64")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fits := 0
	for _, of := range targets {
		err := of.check(self)
		if err == nil {
			fits++
		}
		if err == nil && of.goarch != "amd64" || err == nil && of.goos != "linux" {
			t.Errorf("%s: no error", of.name)
		}
	}
	want := 1 // it needs a loader, or it does not
	if file, err := elf.Open(self); err != nil || file.SectionByType(elf.SHT_GNU_VERNEED) != nil {
		want = 0 // a C compiler linked it, against its glibc
	}
	if fits != want {
		t.Errorf("fits %d targets, want %d", fits, want)
	}
}

func TestAMacProgramIsForItsWheelsMacAndSigned(t *testing.T) {
	const monterey, sequoia = 12 << 16, 15<<16 | 4<<8
	load := func(words ...uint32) (raw macho.LoadBytes) {
		for _, w := range words {
			raw = bytesOf.LittleEndian.AppendUint32(raw, w)
		}
		return raw
	}
	signature := load(codeSignature, 16, 0, 0)
	for _, c := range []struct {
		name, target string
		loads        []macho.Load
		fits         bool
	}{
		{"as Go's linker writes it", "darwin-arm64", []macho.Load{load(buildVersion, 24, 1, monterey, monterey, 0), signature}, true},
		{"x86-64 needs no signature", "darwin-amd64", []macho.Load{load(buildVersion, 24, 1, monterey, monterey, 0)}, true},
		{"no signature", "darwin-arm64", []macho.Load{load(buildVersion, 24, 1, monterey, monterey, 0)}, false},
		{"a newer macOS", "darwin-arm64", []macho.Load{load(buildVersion, 24, 1, sequoia, sequoia, 0), signature}, false},
		{"no version", "darwin-arm64", []macho.Load{load(buildVersion, 8), signature}, false},
	} {
		of, _ := targetOf(c.target)
		f := &macho.File{ByteOrder: bytesOf.LittleEndian, Loads: c.loads}
		if err := of.checkMac(f); (err == nil) != c.fits {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{nil, {"houses"}, {"wheels", "more"}, {"-only", "plan9-mips", "wheels"}, {"-only", "", "all", "wheels"}} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

func TestABuildSaysWhatItBuilds(t *testing.T) {
	t.Chdir(t.TempDir())
	// A go command that lists one package of fonts, and fails to build.
	for name, text := range map[string]string{"go.mod": "module example.com/a\n", "go.sum": "", "go": "#!/bin/sh\ntest $1 = list && echo /mod/go-fonts/liberation@v0/liberationmonobold\n"} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", here)
	var said strings.Builder
	err = run([]string{"-only", "linux-amd64,darwin-arm64", "wheels"}, &said)
	if err == nil || said.String() != "release: building linux-amd64 (1 of 2)\n" {
		t.Errorf("said %q, error %v", said.String(), err)
	}
}

func TestTheListOfPartsHasEachModuleOnce(t *testing.T) {
	b := aBinary(t, "linux-amd64")
	b.info = &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Path: "github.com/memdiag/memdiag", Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v0.1.0", Sum: "h1:AAAA="},
			{Path: "example.com/b", Version: "v0.2.0", Replace: &debug.Module{Path: "example.com/c", Version: "v0.3.0+incompatible"}},
			{Path: fontModule, Version: "v0.5.0", Replace: &debug.Module{Path: fontCopy, Version: "(devel)"}},
		},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "08f6ebc"}, {Key: "-tags", Value: ""}},
	}
	name, text, err := b.sbom()
	if err != nil || name != "memdiag-1.2.3-linux-amd64.cdx.json" {
		t.Fatal(name, err)
	}
	var list bom
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	want := []string{"pkg:golang/stdlib@1.26.8", "pkg:golang/example.com/a@v0.1.0", "pkg:golang/example.com/c@v0.3.0%2Bincompatible", "pkg:golang/codeberg.org/go-fonts/liberation@v0.5.0"}
	var got []string
	for _, c := range list.Components {
		got = append(got, c.PURL)
	}
	if !slices.Equal(got, want) || !slices.Equal(list.Dependencies[0].DependsOn, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if m := list.Metadata; m.Component.PURL != "pkg:golang/github.com/memdiag/memdiag@v1.2.3" || m.Timestamp != "2026-11-23T00:00:00Z" ||
		!slices.Equal(m.Component.Properties, []property{{"memdiag:build:vcs.revision", "08f6ebc"}}) {
		t.Errorf("%+v", m)
	}
}

func TestOnlyATagIsReleased(t *testing.T) {
	for version, want := range map[string]bool{
		"v0.1.0": true, "v1.2.3-rc.1": true,
		"(devel)": false, "": false, "v1.2.3+dirty": false, "v0.0.0-20261123200338-08f6ebc84eaa": false, "v1.2.4-rc.1.0.20261123200338-08f6ebc84eaa": false,
	} {
		if tagged.MatchString(version) != want {
			t.Errorf("%q: want %t", version, want)
		}
	}
}

// TestTheActionInstallsARelease runs the script of the action with a release in a folder, in place of GitHub.
func TestTheActionInstallsARelease(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil || runtime.GOOS != "linux" {
		t.Skip("needs bash on Linux")
	}
	text, err := os.ReadFile("action/action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Runs struct {
			Steps []struct {
				Shell, Run string
				Env        map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil || len(action.Runs.Steps) != 1 || strings.Contains(action.Runs.Steps[0].Run, "${{") {
		t.Fatalf("%v: %+v", err, action)
	}
	// In another action's step, GitHub's action_repository and action_ref are the outer action's, and empty for a local one.
	env := action.Runs.Steps[0].Env
	if env["RELEASES"] != "https://github.com/memdiag/memdiag/releases" || !strings.Contains(env["VERSION"], "action_repository == 'memdiag/memdiag' && github.action_ref") {
		t.Errorf("%q", env)
	}
	release := t.TempDir()
	name := "memdiag-1.2.3-linux-" + runtime.GOARCH
	packed, err := tarball(name, []file{{"memdiag", 0o755, []byte("#!/bin/sh\necho it is installed\n")}}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	_, err = write(release, io.Discard, func() (string, []byte, error) { return "SHA256SUMS", nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	sum, err := write(release, io.Discard, func() (string, []byte, error) { return name + ".tar.gz", packed, nil })
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	const curl = `#!/bin/bash
while (($#)); do case $1 in -o) out=$2; shift ;; https:*) url=$1 ;; esac; shift; done
[[ $url == https://github.example/memdiag/memdiag/releases/download/v1.2.3/* ]] && cp "$RELEASE/${url##*/}" "$out"
`
	if err := os.WriteFile(filepath.Join(bin, "curl"), []byte(curl), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, sums, version string
		installed           bool
	}{
		{"the release", sum, "v1.2.3", true},
		{"another content", strings.Replace(sum, sum[:4], "0123", 1), "v1.2.3", false},
		{"an archive that is not listed", "", "v1.2.3", false},
		{"a release that is not there", sum, "v1.2.4", false},
		{"a branch", sum, "main", false},
		{"no version", sum, "", false},
		{"a command", sum, "v1.2.3;true", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(release, "SHA256SUMS"), []byte(c.sums), 0o666); err != nil {
				t.Fatal(err)
			}
			work := t.TempDir()
			path := filepath.Join(work, "path")
			cmd := recordtest.Command(t, "bash", "-e", "-o", "pipefail", "-c", action.Runs.Steps[0].Run)
			cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "RELEASE="+release, "VERSION="+c.version, "RELEASES=https://github.example/memdiag/memdiag/releases",
				"RUNNER_TEMP="+work, "GITHUB_PATH="+path)
			said, err := cmd.CombinedOutput()
			added, _ := os.ReadFile(path) // which is missing if nothing is installed
			if (err == nil) != c.installed || (len(added) > 0) != c.installed {
				t.Fatalf("%v, %q: %s", err, added, said)
			}
			if !tagged.MatchString(c.version) && !strings.Contains(string(said), "the input 'version'") {
				t.Errorf("%s", said)
			}
			if c.installed {
				if out, err := recordtest.Command(t, filepath.Join(strings.TrimSpace(string(added)), "memdiag")).Output(); err != nil || string(out) != "it is installed\n" {
					t.Errorf("%q, %v", out, err)
				}
			}
		})
	}
}
