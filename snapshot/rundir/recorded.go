package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/agent"
	"github.com/memdiag/memdiag/snapshot/losses"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/peaks"
	"github.com/memdiag/memdiag/snapshot/pprofio"
	"github.com/memdiag/memdiag/snapshot/processes"
)

// The names that recordings give, by their writers: this package, package record, and the agent.
const (
	aNumber   = `(0|[1-9][0-9]*)`
	perhaps   = `(` + rankMark + aNumber + `)?`
	ofChild   = `(` + childMark + aNumber + `)?`
	isAfter   = `(` + afterMark + aNumber + `)?`
	aSnapshot = snapshotStem + `_t?` + aNumber + isAfter + perhaps + ofChild + `\.(memdiag|json|pickle|pb\.gz)`
	again     = `again_` + aNumber + `_` + aNumber + perhaps + `\.(json|pickle|pb\.gz)` // a step's further ones, which the program asked for
	aFile     = `(` + aSnapshot + `|` + again + `|run` + perhaps + `\.json|` + seriesStem + perhaps + `\.memdiag|(host|losses|peaks|processes)` + perhaps + `\.csv)`
	aReport   = `\.agent` + perhaps + `_` + aNumber + `\.json`
	aStanding = `\.standing` + perhaps + `\.json`
)

var (
	snapshotName  = regexp.MustCompile(`^` + aSnapshot + `$`)
	recordedName  = regexp.MustCompile(`^` + aFile + `$`)
	temporaryFile = regexp.MustCompile(`^(` + aReport + `|` + aStanding + `|\.claim_(step|tick)` + perhaps + ofChild + `|(\.` + aFile + `|\.` + aReport + `|` + aStanding + `)\.tmp)$`)
)

// IsRecordedSnapshot reports whether recordings give this name, ending and all, to a snapshot.
func IsRecordedSnapshot(name string) bool { return snapshotName.MatchString(name) }

// IsTemporary reports whether a file has a name that recordings give to files that are removed at their end.
func IsTemporary(name string) bool { return temporaryFile.MatchString(name) }

func isRecorded(name string) bool { return recordedName.MatchString(name) }

func isInfoName(name string) bool { return name == InfoName || name == RankInfoName(RankOf(name)) }

// readInfo reads a file that matches in every detail what a Writer writes as InfoName.
func readInfo(path string) (info snapshot.Info, err error) {
	if at, err := os.Lstat(path); err != nil || !at.Mode().IsRegular() {
		return info, errors.New("no regular file")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return info, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return info, errors.New("no JSON object")
	}
	for _, name := range []string{"schema_version", "seed", "steps", "every", "started", "version"} {
		if _, ok := fields[name]; !ok {
			return info, fmt.Errorf("without %q", name)
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&info); err != nil {
		return info, err
	}
	switch {
	case info.SchemaVersion != SchemaVersion:
		return info, fmt.Errorf("schema version %d", info.SchemaVersion)
	case info.Version == "":
		return info, errors.New("without a version")
	}
	return info, nil
}

// headSize is how much of a file is looked at.
const headSize = 4 << 10

// checkContent refuses a file that has a recorded name, and begins like nothing that is recorded
// under it. An empty file holds nothing that could be lost.
func checkContent(path string) error {
	name := filepath.Base(path)
	if isInfoName(name) || !isRecorded(name) {
		return nil
	}
	head, err := headOf(path)
	if err != nil {
		return &RefusedError{path, "it cannot be read to see whether it is the run's"}
	}
	ours := len(head) == 0
	unpacked := unpack(head)
	switch {
	case ours:
	case strings.HasSuffix(name, ".csv"):
		ours = processes.Detect(head) || losses.Detect(head) || peaks.Detect(head)
	case IsSeriesName(name):
		ours = native.DetectSeries(head)
	case strings.HasSuffix(name, native.Ending):
		ours = native.Detect(head)
	case strings.HasSuffix(name, ".json"):
		ours = agent.Detect(unpacked)
	case strings.HasSuffix(name, ".pb.gz"):
		ours = pprofio.Detect(unpacked)
	case strings.HasSuffix(name, ".pickle"):
		ours = bytes.HasPrefix(head, []byte(pickleStart)) && bytes.Contains(head[:min(len(head), 64)], []byte(pickleKey))
	}
	if !ours {
		return &RefusedError{path, "named as in a recording, and not what memdiag records under such a name"}
	}
	return nil
}

// The agent's pickles have protocol 4, and are a dict whose first key is "memdiag".
const (
	pickleStart = "\x80\x04"
	pickleKey   = "}\x94(\x8c\x07memdiag"
)

func headOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, headSize))
}

// unpack is the beginning of a file's unpacked content, given its gzipped beginning; head itself if it is not gzipped.
func unpack(head []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(head))
	if err != nil {
		return head
	}
	unpacked, _ := io.ReadAll(io.LimitReader(z, headSize)) // it ends where the head ends
	return unpacked
}
