package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/memdiag/memdiag/report"
)

// Ledger records, in a file of the user, which active alarms of a run have arrived at which receiver. A watch that is started again
// then announces none twice, and delivers those that did not arrive.
type Ledger struct {
	path  string
	mu    sync.Mutex
	going map[string]time.Time // time of arrival, by receiver and alarm
	// own are this watch's changes; a zero time means that the alarm has ended. Another watch of the run also writes the file, and may
	// have read it before these changes.
	own map[string]time.Time
}

const (
	// mostLedger is the largest size of a ledger's file.
	mostLedger = 1 << 20
	// mostGoing is how many alarms are kept, the newest.
	mostGoing = 2000
	// ledgersKept is how long the ledger of a run is kept after its last change.
	ledgersKept = 60 * 24 * time.Hour
)

// OpenLedger reads or begins the ledger of a run, in a folder of the user. A run is identified by its folder and its start time. If the
// start time is unknown, there is no ledger, since a later run in the folder would look the same.
func OpenLedger(folder, dir string, began time.Time) (*Ledger, error) {
	if began.IsZero() {
		return nil, nil //nolint:nilnil // a nil ledger knows no alarms
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(whole); err == nil {
		whole = real
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	sweepLedgers(folder)
	name := fmt.Sprintf("alarms-%016x.json", xxhash.Sum64String(whole+"\x00"+began.UTC().Format(time.RFC3339Nano)))
	l := &Ledger{path: filepath.Join(folder, name), going: make(map[string]time.Time), own: make(map[string]time.Time)}
	err = l.read()
	return l, err
}

// read reads the file and applies this watch's own changes.
func (l *Ledger) read() error {
	f, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is read only
	text, err := io.ReadAll(io.LimitReader(f, mostLedger+1))
	if err != nil {
		return err
	}
	if len(text) > mostLedger {
		return fmt.Errorf("%s: more than %d bytes", l.path, mostLedger)
	}
	var going map[string]time.Time
	if json.Unmarshal(text, &going) != nil || going == nil {
		return nil // the file was cut short, and will be rewritten
	}
	l.going = going
	for k, at := range l.own {
		l.set(k, at)
	}
	return nil
}

// set records when an alarm arrived or, if at is zero, that it has ended.
func (l *Ledger) set(key string, at time.Time) {
	if at.IsZero() {
		delete(l.going, key)
		return
	}
	l.going[key] = at
}

// sweepLedgers removes ledgers that have not changed for a long time.
func sweepLedgers(folder string) {
	entries, _ := os.ReadDir(folder) // what cannot be read is not removed
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, "alarms-") || !strings.HasSuffix(name, ".json") {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > ledgersKept {
			_ = os.Remove(filepath.Join(folder, name)) // another watch may have removed it
		}
	}
}

// news reports whether a receiver has yet to receive an event. It is false for an alarm that it knows, and for the end of one that it
// does not know.
func (l *Ledger) news(to string, e *report.Live) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name, begins, _ := e.Alarm()
	_, known := l.going[key(to, e.Rank, name)]
	return known != begins
}

// arrived records that a receiver has received an event.
func (l *Ledger) arrived(to string, e *report.Live) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name, begins, _ := e.Alarm()
	var at time.Time
	if begins {
		at = e.Time
	}
	k := key(to, e.Rank, name)
	l.set(k, at)
	l.own[k] = at
	if err := l.read(); err != nil {
		return err
	}
	if extra := len(l.going) - mostGoing; extra > 0 {
		oldest := slices.SortedFunc(maps.Keys(l.going), func(a, b string) int { return l.going[a].Compare(l.going[b]) })
		for _, k := range oldest[:extra] {
			delete(l.going, k)
		}
	}
	text, err := json.Marshal(l.going)
	if err != nil {
		return err
	}
	part := fmt.Sprintf("%s.%d.tmp", l.path, os.Getpid())
	if err := os.WriteFile(part, text, 0o600); err != nil {
		_ = os.Remove(part) // the first error counts
		return err
	}
	return os.Rename(part, l.path)
}

// key identifies an alarm at a receiver by a hash, since its address may contain secrets.
func key(to string, rank int, name string) string {
	return fmt.Sprintf("%016x %d %s", xxhash.Sum64String(to), rank, name)
}
