// Package profilestore sends profiles to continuous profiling servers.
package profilestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Store is a server that accepts profiles in pprof's format.
type Store struct {
	// URL is the address of Pyroscope or, if its path ends in /profiles/writeraw, of Parca.
	URL *url.URL
	// Authorization is the value of the header with that name; "" for none, or for the URL's own user.
	Authorization string
}

// Profile is a profile in pprof's format that covers a span of time.
type Profile struct {
	Gzipped     []byte
	Type        string            // name of the sample type for bytes
	Name        string            // name of what was profiled
	Labels      map[string]string // names are adapted to what the stores accept
	From, Until time.Time
}

// tries: how many times a profile is sent while the server fails. patient: how long each may take.
const (
	tries   = 3
	patient = 30 * time.Second
)

// pause is the time before the second try; it doubles before each next one.
var pause = time.Second

// Endpoints of Pyroscope, https://grafana.com/docs/pyroscope/latest/reference-server-api/, and of Parca, WriteRaw of
// parca.profilestore.v1alpha1.ProfileStoreService.
const (
	pyroscopePath = "/ingest"
	parcaPath     = "/profiles/writeraw"
)

// Send sends a profile. Its errors contain no URL, which may have a secret.
func (s *Store) Send(ctx context.Context, p Profile) error {
	of := s.toPyroscope
	if strings.HasSuffix(s.URL.Path, parcaPath) {
		of = s.toParca
	}
	client := http.Client{Timeout: patient, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for try := 1; ; try++ {
		request, err := of(ctx, p)
		if err != nil {
			return err
		}
		if s.Authorization != "" {
			request.Header.Set("Authorization", s.Authorization)
		}
		again, err := once(&client, request)
		if err == nil || !again || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause << (try - 1)):
		}
	}
}

// once sends a request, and reports whether it may be tried again.
func once(client *http.Client, request *http.Request) (again bool, err error) {
	response, err := client.Do(request)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err
		}
		return true, err
	}
	defer func() { _ = response.Body.Close() }() // it is read as far as it is needed
	const most = 200
	text, _ := io.ReadAll(io.LimitReader(response.Body, most)) // of use even in part
	if response.StatusCode/100 == 2 {
		return false, nil
	}
	said := strings.TrimSpace(string(text))
	if said != "" {
		said = ": " + said
	}
	return response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests, fmt.Errorf("the server answered %s%s", response.Status, said)
}

func (s *Store) toPyroscope(ctx context.Context, p Profile) (*http.Request, error) {
	to := *s.URL
	if strings.Trim(to.Path, "/") == "" {
		to.Path = pyroscopePath
	}
	query := to.Query()
	query.Set("name", named(p.Name, p.Labels))
	query.Set("from", strconv.FormatInt(p.From.Unix(), 10))
	query.Set("until", strconv.FormatInt(p.Until.Unix(), 10))
	query.Set("format", "pprof")
	query.Set("spyName", "memdiag")
	to.RawQuery = query.Encode()
	types, err := json.Marshal(map[string]any{p.Type: map[string]any{"units": "bytes", "display-name": p.Type, "aggregation": "sum", "cumulative": false, "sampled": false}})
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, part := range []struct {
		name string
		text []byte
	}{{"profile", p.Gzipped}, {"sample_type_config", types}} {
		w, err := form.CreateFormFile(part.name, part.name)
		if err == nil {
			_, err = w.Write(part.text)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := form.Close(); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), &body)
	if err == nil {
		request.Header.Set("Content-Type", form.FormDataContentType())
	}
	return request, err
}

// named is "memdiag{commit=4f2a91c,run=my-run}".
func named(name string, labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, labelName(key)+"="+strings.Map(func(r rune) rune {
			if strings.ContainsRune("{},=\"", r) || r < ' ' {
				return '_'
			}
			return r
		}, labels[key]))
	}
	return labelName(name) + "{" + strings.Join(pairs, ",") + "}"
}

// labelName replaces everything except letters, digits and underscores.
func labelName(name string) string {
	name = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, name)
	if name == "" || name[0] <= '9' {
		name = "_" + name
	}
	return name
}

type parcaLabel struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (s *Store) toParca(ctx context.Context, p Profile) (*http.Request, error) {
	labels := []parcaLabel{{"__name__", labelName(p.Name)}}
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		labels = append(labels, parcaLabel{labelName(key), p.Labels[key]})
	}
	type sample struct {
		RawProfile []byte `json:"rawProfile"` // base64, as bytes are in the JSON of Protocol Buffers
	}
	type series struct {
		Labels  map[string][]parcaLabel `json:"labels"`
		Samples []sample                `json:"samples"`
	}
	body, err := json.Marshal(map[string]any{"normalized": false, "series": []series{{map[string][]parcaLabel{"labels": labels}, []sample{{p.Gzipped}}}}})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL.String(), bytes.NewReader(body))
	if err == nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, err
}
