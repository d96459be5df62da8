// Release builds what a release of memdiag consists of, for every platform, from one tree:
//
//	go run ./release wheels    # Python wheels
//	go run ./release all       # also archives, lists of parts (SBOM) and checksums
//
// It publishes nothing. The version is the one that the go command stamps into the binaries: the
// tag of the commit. Two builds of one commit by one Go toolchain are equal to the byte.
package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "release:", err)
		}
		os.Exit(2)
	}
}

// tagged is a version that is a tag's, of a tree without changes.
var tagged = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)

// run builds what args ask for. What it builds and the names of what it wrote go to stderr.
func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("o", "dist", "`folder` to write into")
	only := flags.String("only", "", "`targets`, separated by commas, such as linux-amd64; all by default")
	trial := flags.Bool("trial", false, "build all from a commit without a tag")
	if err := flags.Parse(args); err != nil {
		return err
	}
	what := flags.Arg(0)
	if flags.NArg() != 1 || what != "wheels" && what != "all" {
		return fmt.Errorf("say what to build, after any flags: wheels or all; got %q", flags.Args())
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil { //nolint:gosec // what is released is for everybody
		return err
	}
	work, err := os.MkdirTemp("", "memdiag-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // of a folder of temporary files
	modfile, err := fewFonts(work)
	if err != nil {
		return err
	}
	binaries := make([]*binary, len(chosen))
	for i, t := range chosen {
		if _, err := fmt.Fprintf(stderr, "release: building %s (%d of %d)\n", t.name, i+1, len(chosen)); err != nil {
			return err
		}
		if binaries[i], err = t.build(filepath.Join(work, t.name), modfile); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	var manual []file
	if what == "all" {
		if version := binaries[0].version; !tagged.MatchString(version) && !*trial {
			return fmt.Errorf("the version is %s: a release is built from a clone, at a tag, without changes; -trial builds in any case", cmp.Or(version, "unknown"))
		}
		if manual, err = pages(binaries, filepath.Join(work, "pages")); err != nil {
			return fmt.Errorf("manual pages and completion: %w", err)
		}
	}
	var sums []string
	for i, b := range binaries {
		packs := []packer{b.wheel}
		if i == 0 {
			packs = append(packs, b.source) // which all have in common
		}
		if what == "all" {
			packs = append(packs, func() (string, []byte, error) { return b.archive(manual) }, b.sbom)
		}
		for _, pack := range packs {
			sum, err := write(*out, stderr, pack)
			if err != nil {
				return fmt.Errorf("%s: %w", b.name, err)
			}
			sums = append(sums, sum)
		}
	}
	if what != "all" {
		return nil
	}
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[2*sha256.Size:], b[2*sha256.Size:]) }) // by name
	_, err = write(*out, stderr, func() (string, []byte, error) { return "SHA256SUMS", []byte(strings.Join(sums, "")), nil })
	return err
}

// choose returns the targets of these names; all for "".
func choose(names string) (chosen []target, err error) {
	if names == "" {
		return targets, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		t, ok := targetOf(name)
		if !ok {
			return nil, fmt.Errorf("no target %q", name)
		}
		chosen = append(chosen, t)
	}
	return chosen, nil
}

// packer makes a file of a release.
type packer func() (name string, content []byte, err error)

// write puts a file into a folder, and returns its line as sha256sum has it.
func write(dir string, stderr io.Writer, pack packer) (sum string, err error) {
	name, content, err := pack()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // what is released is for everybody
		return "", err
	}
	_, err = fmt.Fprintf(stderr, "release: wrote %s (%.1f MB)\n", path, float64(len(content))/1e6)
	return fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name), err
}

// timeOf is the time that all files of a release have: SOURCE_DATE_EPOCH, or else the commit's.
// Zip knows none before 1980.
func timeOf(epoch, commit string) (time.Time, error) {
	first := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	at := first
	switch {
	case epoch != "":
		var seconds int64
		if _, err := fmt.Sscanf(epoch, "%d", &seconds); err != nil {
			return at, fmt.Errorf("SOURCE_DATE_EPOCH is %q, and no number of seconds", epoch)
		}
		at = time.Unix(seconds, 0).UTC()
	case commit != "":
		var err error
		if at, err = time.Parse(time.RFC3339, commit); err != nil {
			return at, fmt.Errorf("time of the commit: %w", err)
		}
	}
	if at.Before(first) {
		at = first
	}
	return at.UTC(), nil
}
