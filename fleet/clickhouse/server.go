package clickhouse

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/fleet/parquet"
)

// Server is one that answered.
type Server struct {
	Address *Address

	host   string
	client *http.Client
}

// Error is a server's error message.
type Error struct {
	Host string
	Code int // ClickHouse's; 0 if it has none
	Said string
}

func (e *Error) Error() string { return e.Host + ": the server says: " + e.Said }

// Codes of ClickHouse's errors.
const (
	noSuchTable    = 60
	syntax         = 62
	noSuchDatabase = 81
)

// Hint is the hint for an error that has one.
func (e *Error) Hint() string {
	if e.shardLacks() {
		return "memdiag fleet init --to with all servers of the cluster makes it"
	}
	switch e.Code {
	case noSuchTable, noSuchDatabase:
		return "memdiag fleet init --to makes the tables that are missing"
	case 192, 193, 194, 516:
		return "CLICKHOUSE_USER and CLICKHOUSE_PASSWORD say who asks"
	case 203, 209, 210, 242, 279, 425:
		return "a server of its cluster is down; start it, and give the command again: nothing is lost, and nothing counts twice"
	case 10, 16, 47:
		return "its tables are older than this memdiag; memdiag fleet init --to adds what they lack"
	case 170, 701:
		return "?cluster= names one of remote_servers in the server's configuration"
	case 164, 497:
		return "the user needs the rights to create tables, views and functions, to insert and to select"
	case 0:
		return "the port must be the one for HTTP, 8123 unless it was changed, or 8443 with ?secure=true"
	}
	return ""
}

// Missing reports whether an error says that a table or the database is not there, or not on a shard.
func Missing(err error) bool {
	said, ok := errors.AsType[*Error](err)
	return ok && (said.Code == noSuchTable || said.Code == noSuchDatabase || said.shardLacks())
}

// NotUnderstood reports whether the server does not know a statement, for example because it is too old for it.
func NotUnderstood(err error) bool {
	said, ok := errors.AsType[*Error](err)
	return ok && said.Code == syntax
}

// shardLacks reports whether a table is not on a server of the cluster.
func (e *Error) shardLacks() bool { return strings.Contains(e.Said, "There is no table") }

// DownError is a server that does not answer.
type DownError struct {
	Host string
	Err  error
}

func (e *DownError) Error() string { return e.Host + ": the server does not answer: " + e.Err.Error() }

func (e *DownError) Unwrap() error { return e.Err }

// Hint is the way out.
func (e *DownError) Hint() string {
	return "see that it runs, and that the port is the one for HTTP; then give the command again: nothing is lost, and nothing counts twice"
}

const patient = 10 * time.Second // for a connection and a first answer

// Open finds the first of an address' servers that answers.
func Open(ctx context.Context, a *Address) (*Server, error) {
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: patient}).DialContext, TLSHandshakeTimeout: patient, Proxy: http.ProxyFromEnvironment,
	}
	// A redirect would show the password to a host that the user did not name.
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var first error
	for _, host := range a.hosts {
		s := &Server{a, host, client}
		soon, cancel := context.WithTimeout(ctx, patient)
		err := s.Exec(soon, "SELECT 1")
		cancel()
		if err == nil {
			return s, nil
		}
		if first == nil {
			first = err
		}
		if !errors.As(err, new(*DownError)) {
			return nil, err
		}
	}
	return nil, first
}

// Exec runs a statement.
func (s *Server) Exec(ctx context.Context, statement string) error {
	answer, err := s.ask(ctx, nil, strings.NewReader(statement))
	if err == nil {
		_, err = io.Copy(io.Discard, answer)
		err = errors.Join(err, answer.Close())
	}
	return err
}

// Select runs a query, and calls see with each block of the answer. The columns must be of these kinds.
func (s *Server) Select(ctx context.Context, query string, kinds []parquet.Kind, see func(columns []*parquet.Values, rows int) error) error {
	answer, err := s.ask(ctx, nil, strings.NewReader(query+" FORMAT Native"))
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }() // all of it was read, or it is of no use
	own := false
	err = readBlocks(bufio.NewReaderSize(answer, 1<<16), kinds, func(columns []*parquet.Values, rows int) error {
		err := see(columns, rows)
		own = err != nil
		return err
	})
	if err != nil && !own {
		err = s.failed(err)
	}
	return err
}

// Insert is an insertion in progress. If the server fails in the middle, it may have stored a part.
type Insert struct {
	server *Server
	ctx    context.Context
	table  string
	body   *io.PipeWriter
	done   chan error
	buffer []byte
}

// Insert begins to insert into a table.
func (s *Server) Insert(ctx context.Context, table string) *Insert {
	return &Insert{server: s, ctx: ctx, table: table}
}

// Write sends rows. All have the same columns.
func (i *Insert) Write(columns []parquet.Column) error {
	if i.body == nil {
		i.begin(columns)
	}
	i.buffer = appendBlock(i.buffer[:0], columns)
	if _, err := i.body.Write(i.buffer); err != nil {
		if err := i.Close(); err != nil { // which has the reason
			return err
		}
		return &DownError{i.server.host, err}
	}
	return nil
}

func (i *Insert) begin(columns []parquet.Column) {
	var names []string
	for _, c := range columns {
		names = append(names, Name(c.Name))
	}
	out, body := io.Pipe()
	i.body, i.done = body, make(chan error, 1)
	statement := fmt.Sprintf("INSERT INTO %s.%s (%s) FORMAT Native", Name(i.server.Address.Database), Name(i.table), strings.Join(names, ", "))
	go func() {
		// A Distributed table passes rows on before it answers; else it would keep them, and pass them on some time.
		answer, err := i.server.ask(i.ctx, url.Values{"query": {statement}, "insert_distributed_sync": {"1"}}, out)
		if err == nil {
			_, err = io.Copy(io.Discard, answer)
			err = errors.Join(err, answer.Close())
		}
		_ = out.CloseWithError(io.ErrClosedPipe) // so that who writes does not wait for it
		i.done <- err
	}()
}

// Close ends the insertion, and returns when the server has all rows.
func (i *Insert) Close() error {
	if i.body == nil {
		return nil
	}
	return i.end(io.EOF)
}

func (i *Insert) end(how error) error {
	_ = i.body.CloseWithError(how) // which never fails
	i.body = nil
	return <-i.done
}

// Abort ends it without.
func (i *Insert) Abort() {
	if i.body != nil {
		_ = i.end(context.Canceled) // who aborts knows why
	}
}

func (s *Server) ask(ctx context.Context, settings url.Values, body io.Reader) (io.ReadCloser, error) {
	if settings == nil {
		settings = make(url.Values)
	}
	settings.Set("wait_end_of_query", "1") // an error then is no part of an answer
	at := url.URL{Scheme: "http", Host: s.host, Path: "/", RawQuery: settings.Encode()}
	if s.Address.secure {
		at.Scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), body)
	if err != nil {
		return nil, err
	}
	if s.Address.user != "" || s.Address.password != "" {
		user := s.Address.user
		if user == "" {
			user = "default"
		}
		request.SetBasicAuth(user, s.Address.password)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, s.failed(err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer func() { _ = response.Body.Close() }() // read as far as it is of use
	const most = 4096
	text, _ := io.ReadAll(io.LimitReader(response.Body, most)) // of use even in part
	return nil, s.said(response.Status, string(text))
}

// failed is an error of the connection, without the URL.
func (s *Server) failed(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("not within %v", patient)
	}
	if other, ok := errors.AsType[*answerError](err); ok {
		return fmt.Errorf("%s: the server's answer cannot be read: %w", s.host, other)
	}
	return &DownError{s.host, err}
}

var (
	codeIs = regexp.MustCompile(`Code: (\d+)[.,] `)
	// noise is the text around the message in ClickHouse's errors.
	noise = regexp.MustCompile(`^Code: \d+[.,] (e\.displayText\(\) = )?|DB::(Net)?Exception: |[ ,]*e\.what\(\) = DB::(Net)?Exception| \(version .*\)$`)
)

// said makes an error of a server's one line.
func (s *Server) said(status, text string) error {
	e := &Error{Host: s.host}
	if m := codeIs.FindStringSubmatch(text); m != nil {
		e.Code, _ = strconv.Atoi(m[1]) // of digits alone; too many are none that is known
	}
	const most = 300
	text = strings.TrimRight(noise.ReplaceAllString(strings.Join(strings.Fields(text), " "), ""), ", .")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	if e.Said = text; text == "" {
		e.Said = status
	}
	return e
}

// Name is a table's or a column's name in SQL.
func Name(name string) string { return "`" + escaped.Replace(name) + "`" }

// Text is a text in SQL.
func Text(text string) string { return "'" + escaped.Replace(text) + "'" }

var escaped = strings.NewReplacer(`\`, `\\`, "'", `\'`, "`", "\\`", "\x00", `\0`)
