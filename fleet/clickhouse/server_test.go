package clickhouse_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/fleet/clickhouse"
	"github.com/memdiag/memdiag/fleet/parquet"
)

// serve has a server answer all but SELECT 1 by a function.
func serve(t *testing.T, user string, answer http.HandlerFunc) *clickhouse.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("query") == "" {
			body, err := io.ReadAll(r.Body)
			if err != nil || string(body) == "SELECT 1" {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	a, err := clickhouse.Parse(clickhouse.Scheme+user+strings.TrimPrefix(server.URL, "http://")+"/fleet", nothing)
	if err != nil {
		t.Fatal(err)
	}
	s, err := clickhouse.Open(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var columns = []parquet.Column{
	{Name: "run", Kind: parquet.Text, Texts: []string{"a", "", "it's\x00"}},
	{Name: "rank", Kind: parquet.Int, Ints: []int64{-1, 0, 1 << 62}},
	{Name: "rate", Kind: parquet.Float, Floats: []float64{0, -1.5, 3}},
	{Name: "added", Kind: parquet.Time, Ints: []int64{1, 2, 3}},
}

var kinds = []parquet.Kind{parquet.Text, parquet.Int, parquet.Float, parquet.Time}

// sent is what an insertion of the columns sends.
func sent(t *testing.T) []byte {
	t.Helper()
	var body []byte
	s := serve(t, "me:pass%3Aword@", func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		statement := r.URL.Query().Get("query")
		if statement != "INSERT INTO `fleet`.`runs` (`run`, `rank`, `rate`, `added`) FORMAT Native" || user != "me" || password != "pass:word" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		body, _ = io.ReadAll(r.Body)
	})
	i := s.Insert(t.Context(), "runs")
	if err := errors.Join(i.Write(columns), i.Write(columns), i.Close()); err != nil {
		t.Fatal(err)
	}
	return body
}

func TestBlocksComeBackAsTheyWereSent(t *testing.T) {
	data := sent(t)
	s := serve(t, "", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	rows := 0
	err := s.Select(t.Context(), "SELECT 2", kinds, func(v []*parquet.Values, n int) error {
		if !slices.Equal(v[0].Texts, columns[0].Texts) || !slices.Equal(v[1].Ints, columns[1].Ints) || !slices.Equal(v[2].Floats, columns[2].Floats) || !slices.Equal(v[3].Ints, columns[3].Ints) {
			t.Errorf("%+v", v)
		}
		rows += n
		return nil
	})
	if err != nil || rows != 6 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

func TestAnswersOfAnotherShapeAreErrors(t *testing.T) {
	data := sent(t)
	answers := map[string][]byte{
		"cut":           data[:len(data)-1],
		"more columns":  append([]byte{5}, data[1:]...),
		"columns":       {200, 200, 200, 200, 1},
		"rows":          {4, 255, 255, 255, 255, 255, 255, 1},
		"text":          {4, 1, 255, 255, 255, 255, 1},
		"another type":  bytes.Replace(data, []byte("Int64"), []byte("Int32"), 1),
		"an error page": []byte("Code: 241. DB::Exception: memory"),
	}
	var answer []byte
	s := serve(t, "", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) })
	for name := range answers {
		answer = answers[name]
		err := s.Select(t.Context(), "SELECT 2", kinds, func([]*parquet.Values, int) error { return nil })
		if err == nil || errors.As(err, new(*clickhouse.DownError)) != (name == "cut") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatServersSayIsOneLine(t *testing.T) {
	said := map[string]string{
		"Code: 60, e.displayText() = DB::Exception: Table memdiag.nothing doesn't exist., e.what() = DB::Exception\n": "Table memdiag.nothing doesn't exist",
		"Code: 60. DB::Exception: Unknown table\nexpression. (UNKNOWN_TABLE) (version 26.9.1.1 (official build))\n":   "Unknown table expression. (UNKNOWN_TABLE)",
		"":                        "500 Internal Server Error",
		strings.Repeat("x", 5000): strings.Repeat("x", 300) + "…",
	}
	var text string
	s := serve(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, text)
	})
	for given, want := range said {
		text = given
		err := s.Exec(t.Context(), "SELECT 2")
		if e := (*clickhouse.Error)(nil); !errors.As(err, &e) || e.Said != want || clickhouse.Missing(err) != strings.HasPrefix(given, "Code: 60") {
			t.Errorf("%q is %v", given, err)
		}
	}
}

func TestAServerThatBreaksOffAnInsertionIsAnError(t *testing.T) {
	s := serve(t, "", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	i := s.Insert(t.Context(), "runs")
	var err error
	for range 1000 {
		if err = i.Write(columns); err != nil {
			break
		}
	}
	if err == nil {
		err = i.Close()
	}
	if !errors.As(err, new(*clickhouse.DownError)) {
		t.Errorf("%v", err)
	}
	i.Abort() // which has nothing left to do
}

func TestTheFirstServerThatAnswersIsTaken(t *testing.T) {
	live := serve(t, "", func(http.ResponseWriter, *http.Request) {})
	address := strings.TrimPrefix(live.Address.String(), clickhouse.Scheme)
	a, err := clickhouse.Parse(clickhouse.Scheme+"127.0.0.1:1,"+address+"?cluster=c", nothing)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clickhouse.Open(t.Context(), a); err != nil {
		t.Error(err)
	}
}
