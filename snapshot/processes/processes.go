// Package processes reads and writes what a recording has of the processes of its command: a
// table of processes and one of the whole tree, both as comma-separated text.
package processes

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/secret"
)

// Header begins a table of processes, and HostHeader one of the tree.
const (
	Header     = othersHeader + ",written_bytes\n"
	HostHeader = kernelHeader + ",segment_folder\n"

	// kernelHeader and othersHeader are the headers from before memdiag recorded which processes write shared memory, and into which
	// folder.
	kernelHeader = groupHeader + ",group_kernel_bytes"
	othersHeader = oldHeader + ",anon_of_others_bytes"

	// groupHeader is the header from before memdiag recorded the kernel's memory.
	groupHeader = oldHostHeader + ",group_current_bytes,group_peak_bytes,group_limit_bytes,group_anon_bytes,group_file_bytes,group_shared_bytes,group_limit_reached,group_killed,group_others,segments,segment_bytes"

	// oldHostHeader is the header from before memdiag recorded control groups.
	oldHostHeader = "time_us,processes,rss_bytes,pss_bytes"
	// oldHeader is the header from before memdiag recorded which anonymous pages belong to other processes, too.
	oldHeader = "time_us,pid,started,parent,role,recorded,anon_bytes,file_bytes,shared_bytes,swap_bytes,pss_bytes"
)

// Limits for reading: a recording stays far below them.
const (
	maxRows = 1 << 19
	maxRole = 200
	maxLine = 64 << 10
)

const mostRoles = 1024 // that are remembered while a table is read

// Detect reports whether a file that begins so is a table of processes or of the tree, or the
// beginning of its header, as on a full disk.
func Detect(head []byte) bool {
	text := string(head)
	return slices.ContainsFunc([]string{Header, othersHeader + "\n", oldHeader + "\n", HostHeader, kernelHeader + "\n", groupHeader + "\n", oldHostHeader + "\n"}, func(header string) bool {
		return strings.HasPrefix(text, header) || strings.HasPrefix(header, text)
	})
}

// WritePoint writes a line of the table of processes. The role is as Role makes it, which takes longer than all the rest.
func WritePoint(w io.Writer, p *snapshot.TreeProcess, at *snapshot.ProcessPoint) error {
	out := csv.NewWriter(w)
	err := out.Write([]string{
		strconv.FormatInt(at.Time.UnixMicro(), 10), strconv.Itoa(p.PID), strconv.FormatInt(p.Started, 10), strconv.Itoa(p.Parent),
		p.Role, strconv.FormatBool(at.Recorded),
		known(at.Anonymous), known(at.File), known(at.Shared), known(at.Swapped), known(at.PSS), known(at.OfOthers), known(at.Written),
	})
	out.Flush()
	return errors.Join(err, out.Error())
}

// Role makes a name safe for a table: on one line, without anything that a terminal obeys, and no longer than readers accept. A process
// may give itself any title, so secrets in it are masked as in a command line.
func Role(name string) string {
	var b strings.Builder
	for _, r := range strings.TrimSpace(secret.Text(strings.ToValidUTF8(name, "?"))) {
		text := string(r)
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			text = " "
		case !unicode.IsPrint(r):
			quoted := strconv.QuoteRuneToASCII(r)
			text = quoted[1 : len(quoted)-1]
		}
		if b.Len()+len(text) > maxRole {
			break
		}
		b.WriteString(text)
	}
	return strings.TrimSpace(b.String())
}

// roles are names with what Role makes of them, which takes far longer than to read a line.
type roles map[string]string

func (r roles) of(name string) string {
	role, ok := r[name]
	if !ok {
		if len(r) == mostRoles {
			clear(r) // each line of a damaged table may have another
		}
		role = Role(name)
		r[name] = role
	}
	return role
}

// WriteHost writes a line of the table of the tree.
func WriteHost(w io.Writer, h *snapshot.HostPoint) error {
	g := &h.Group
	fields := []string{strconv.FormatInt(h.Time.UnixMicro(), 10), strconv.Itoa(h.Processes), known(h.RSS), known(h.PSS)}
	for _, v := range []snapshot.Bytes{g.Current, g.Peak, g.Limit, g.Anonymous, g.File, g.Shared} {
		fields = append(fields, known(v))
	}
	for _, v := range []int64{g.LimitReached, g.Killed, g.Others, h.Segments} {
		fields = append(fields, known(snapshot.Bytes(v)))
	}
	out := csv.NewWriter(w)
	err := out.Write(append(fields, known(h.SegmentBytes), known(g.Kernel), Role(h.Folder)))
	out.Flush()
	return errors.Join(err, out.Error())
}

// known is a number; "" for one that is not known.
func known(v snapshot.Bytes) string {
	if v < 0 {
		return ""
	}
	return strconv.FormatInt(int64(v), 10)
}

// ErrCut says that a table's last line is incomplete, as on a full disk. It is left out.
var ErrCut = errors.New("the last line is cut, and is left out")

// errClock is for a line that is earlier than the previous one. The recorder uses a clock that cannot be set back.
var errClock = errors.New("the time goes back")

// Read reads a table of processes. It stops at an invalid line, and the error says where; the lines before are returned all the same.
func Read(r io.Reader) ([]snapshot.TreeProcess, error) {
	type key struct {
		pid     int
		started int64
	}
	var out []snapshot.TreeProcess
	at := make(map[key]int)
	roles := make(roles)
	_, err := rows(r, []string{Header, othersHeader, oldHeader}, func(f *fields) error {
		p := snapshot.ProcessPoint{Time: f.time()}
		k := key{pid: f.int()}
		k.started = int64(f.bytes())
		parent, role := f.int(), roles.of(f.text())
		p.Recorded = f.text() == "true"
		for _, to := range []*snapshot.Bytes{&p.Anonymous, &p.File, &p.Shared, &p.Swapped} {
			*to = max(0, f.bytes())
		}
		p.PSS, p.OfOthers, p.Written = f.bytes(), f.bytes(), f.bytes()
		if f.err != nil {
			return f.err
		}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, snapshot.TreeProcess{PID: k.pid, Started: k.started})
		}
		out[i].Parent, out[i].Role = parent, role // as it was last
		if n := len(out[i].Points); n > 0 && p.Time.Before(out[i].Points[n-1].Time) {
			return errClock
		}
		out[i].Points = append(out[i].Points, p)
		return nil
	})
	return out, err
}

// ReadHost reads a table of the tree, as Read does. It is followed by a table of processes unless an
// older memdiag wrote it.
func ReadHost(r io.Reader) (out []snapshot.HostPoint, followed bool, err error) {
	columns, err := rows(r, []string{HostHeader, kernelHeader, groupHeader, oldHostHeader}, func(f *fields) error {
		h := snapshot.HostPoint{Time: f.time(), Processes: f.int(), RSS: f.bytes(), PSS: f.bytes()}
		g := &h.Group
		for _, to := range []*snapshot.Bytes{&g.Current, &g.Peak, &g.Limit, &g.Anonymous, &g.File, &g.Shared} {
			*to = f.bytes()
		}
		for _, to := range []*int64{&g.LimitReached, &g.Killed, &g.Others, &h.Segments} {
			*to = int64(f.bytes())
		}
		h.SegmentBytes, g.Kernel, h.Folder = f.bytes(), f.bytes(), Role(f.text())
		if f.err != nil {
			return f.err
		}
		if n := len(out); n > 0 && h.Time.Before(out[n-1].Time) {
			return errClock
		}
		out = append(out, h)
		return nil
	})
	return out, columns != oldHostHeader, err
}

// rows calls row with each line after the first, which must have the columns of one of the headers and may have more. It returns that
// header.
func rows(r io.Reader, headers []string, row func(*fields) error) (columns string, err error) {
	whole := &lines{from: r}
	in := csv.NewReader(whole)
	in.FieldsPerRecord, in.ReuseRecord = 0, true // as many fields as the header
	for n := 0; ; n++ {
		record, err := in.Read()
		switch {
		case errors.Is(err, io.EOF):
			if n == 0 {
				return "", errors.New("it is empty")
			}
			if len(whole.rest) > 0 {
				return columns, ErrCut
			}
			return columns, nil
		case err == nil && n == 0:
			begin := strings.Join(record, ",") + ","
			i := slices.IndexFunc(headers, func(h string) bool { return strings.HasPrefix(begin, strings.TrimSpace(h)+",") })
			if i < 0 {
				err = errors.New("the columns are not those that memdiag writes")
				break
			}
			columns = headers[i]
		case err == nil && n > maxRows:
			err = fmt.Errorf("more than %d lines", maxRows)
		case err == nil && n > 0:
			err = row(&fields{left: record})
		}
		if err != nil {
			return columns, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
}

// lines are those of a text that are whole; it ends before one of more than maxLine bytes.
type lines struct {
	from   io.Reader
	ready  []byte // of whole lines
	rest   []byte // what follows them
	quoted bool   // whether a line continues in quotes
	err    error  // of the text
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.ready) == 0 && l.err == nil {
		l.more()
	}
	n := copy(p, l.ready)
	l.ready = l.ready[n:]
	if n > 0 {
		return n, nil
	}
	return 0, l.err
}

// more reads on.
func (l *lines) more() {
	part := make([]byte, maxLine)
	n, err := l.from.Read(part)
	l.err = err
	whole := 0 // bytes read up to the last complete line
	for i, c := range part[:n] {
		switch {
		case c == '"':
			l.quoted = !l.quoted
		case c == '\n' && !l.quoted:
			whole = i + 1
		}
	}
	if whole > 0 {
		l.ready, l.rest = slices.Concat(l.rest, part[:whole]), nil
	}
	l.rest = append(l.rest, part[whole:n]...)
	if len(l.rest) > maxLine {
		l.err = fmt.Errorf("a line of more than %d bytes", maxLine)
	}
}

// fields are read one after the other; the first that is no number is the error.
type fields struct {
	left []string
	err  error
}

// text is "" after the last field.
func (f *fields) text() string {
	if len(f.left) == 0 {
		return ""
	}
	text := f.left[0]
	f.left = f.left[1:]
	return text
}

// bytes is Unknown for a missing field.
func (f *fields) bytes() snapshot.Bytes {
	text := f.text()
	if text == "" {
		return snapshot.Unknown
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (n < 0 || n > maxNumber) {
		err = fmt.Errorf("%s is out of range", text)
	}
	if err != nil && f.err == nil {
		f.err = err
	}
	return snapshot.Bytes(n)
}

// maxNumber is more than any time, and such that all of a table have a sum.
const maxNumber = 1 << 53

func (f *fields) int() int { return int(max(0, f.bytes())) }

func (f *fields) time() time.Time { return time.UnixMicro(int64(max(0, f.bytes()))).UTC() }
