package profilestore

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

var growth = Profile{
	Gzipped: []byte("pprof"), Type: "growth_bytes", Name: "memdiag",
	Labels: map[string]string{"run": `a"b,c`, "rank": "3", "git-commit": "4f2a91c"},
	From:   time.Unix(100, 0), Until: time.Unix(200, 0),
}

func send(t *testing.T, path string, answer http.HandlerFunc) error {
	t.Helper()
	pause = time.Millisecond
	server := httptest.NewServer(answer)
	defer server.Close()
	to, err := url.Parse(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	return (&Store{URL: to, Authorization: "Bearer x"}).Send(t.Context(), growth)
}

func TestPyroscopeTakesAProfile(t *testing.T) {
	err := send(t, "", func(_ http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.Method != http.MethodPost || r.URL.Path != "/ingest" || q.Get("format") != "pprof" || q.Get("from") != "100" || q.Get("until") != "200" || r.Header.Get("Authorization") != "Bearer x" {
			t.Errorf("%s %s, %v", r.Method, r.URL, r.Header)
		}
		if name := q.Get("name"); name != "memdiag{git_commit=4f2a91c,rank=3,run=a_b_c}" {
			t.Errorf("name %s", name)
		}
		for part, want := range map[string]string{"profile": "pprof", "sample_type_config": `{"growth_bytes":{"aggregation":"sum","cumulative":false,"display-name":"growth_bytes","sampled":false,"units":"bytes"}}`} {
			f, _, err := r.FormFile(part)
			if err != nil {
				t.Error(err)
				return
			}
			if text, _ := io.ReadAll(f); string(text) != want {
				t.Errorf("%s: %s", part, text)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestParcaTakesAProfile(t *testing.T) {
	err := send(t, "/profiles/writeraw", func(_ http.ResponseWriter, r *http.Request) {
		var got struct {
			Series []struct {
				Labels struct {
					Labels []parcaLabel
				}
				Samples []struct{ RawProfile string }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || len(got.Series) != 1 || len(got.Series[0].Samples) != 1 {
			t.Errorf("%+v, %v", got, err)
			return
		}
		labels := got.Series[0].Labels.Labels
		if text, err := base64.StdEncoding.DecodeString(got.Series[0].Samples[0].RawProfile); err != nil || string(text) != "pprof" || len(labels) != 4 || labels[0] != (parcaLabel{"__name__", "memdiag"}) || labels[3] != (parcaLabel{"run", `a"b,c`}) {
			t.Errorf("%s, %v, %v", text, labels, err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAServerThatFailsIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		status, want int
		said         string
	}{{503, 3, "answered 503"}, {400, 1, "no such app"}, {302, 1, "answered 302"}} {
		asked := 0
		err := send(t, "", func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.Header().Set("Location", "http://elsewhere.invalid/")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, "no such app\n"+strings.Repeat("x", 1000))
		})
		if asked != c.want || err == nil || !strings.Contains(err.Error(), c.said) || len(err.Error()) > 300 {
			t.Errorf("status %d: asked %d times, %v", c.status, asked, err)
		}
	}
	gone, _ := url.Parse("http://user:secret@127.0.0.1:1/")
	if err := (&Store{URL: gone}).Send(t.Context(), growth); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
