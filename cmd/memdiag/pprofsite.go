package main

import (
	"errors"
	stdflag "flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	pprof "github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
)

// pprofPages are the pages of pprof that are served. Left out are those that save and delete settings in the user's folder, and
// disassembly, which needs the program. sourceSite serves the page of source lines.
var pprofPages = []string{"/", "/flamegraph", "/graph", "/top", "/peek", "/download"}

// oneAtATime serves one request at a time, since pprof's settings are global.
func oneAtATime(site http.Handler) http.Handler {
	var one sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		site.ServeHTTP(w, r)
	})
}

// newPprofSite returns some of pprof's pages for one profile. pprof's messages go to say.
func newPprofSite(p *profile.Profile, paths []string, say func(string)) (http.Handler, error) {
	var all map[string]http.Handler
	flags := stdflag.NewFlagSet("pprof", stdflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	err := pprof.PProf(&pprof.Options{
		Flagset: pprofFlags{flags}, Fetch: given{p}, Sym: noSymbols{}, Obj: noPrograms{}, UI: pprofUI{say},
		HTTPServer: func(args *pprof.HTTPServerArgs) error {
			all = args.Handlers
			return nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("pprof: %w", err)
	}
	pages := make(map[string]http.Handler)
	for _, path := range paths {
		if all[path] == nil {
			return nil, fmt.Errorf("pprof has no page %s any more", path)
		}
		pages[path] = all[path]
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := pages[r.URL.Path]
		if page == nil {
			http.NotFound(w, r)
			return
		}
		page.ServeHTTP(w, r)
	}), nil
}

// pprofFlags is pprof's command line, which is always the same.
type pprofFlags struct{ *stdflag.FlagSet }

// StringList defines a flag that may be given several times; here none is.
func (pprofFlags) StringList(string, string, string) *[]*string { return new([]*string) }

// ExtraUsage is not needed without a command line.
func (pprofFlags) ExtraUsage() string { return "" }

// AddExtraUsage is not needed without a command line.
func (pprofFlags) AddExtraUsage(string) {}

// Parse requests the web pages of the profile. The address is not used. The prefix to trim occurs in no name; with it, pprof does not
// guess one from the current folder's name, and does not look for files above that.
func (f pprofFlags) Parse(func()) []string {
	if err := f.FlagSet.Parse([]string{"-http=localhost:1", "-no_browser", "-symbolize=none", "-trim_path=/memdiag trims nothing"}); err != nil {
		return nil // pprof then ends with its own error
	}
	return []string{"memory"}
}

// given fetches the same profile for every request.
type given struct{ p *profile.Profile }

func (g given) Fetch(string, time.Duration, time.Duration) (*profile.Profile, string, error) {
	return g.p, "", nil
}

// noSymbols leaves a profile as it is, since its frames all have names.
type noSymbols struct{}

func (noSymbols) Symbolize(string, pprof.MappingSources, *profile.Profile) error { return nil }

// noPrograms opens no program, since the stacks do not come from one.
type noPrograms struct{}

func (noPrograms) Open(string, uint64, uint64, uint64, string) (pprof.ObjFile, error) {
	return nil, errors.New("no program")
}

func (noPrograms) Disasm(string, uint64, uint64, bool) ([]pprof.Inst, error) {
	return nil, errors.New("no program")
}

// pprofUI passes on pprof's messages about errors, and no others.
type pprofUI struct{ say func(string) }

func (pprofUI) ReadLine(string) (string, error)     { return "", io.EOF }
func (pprofUI) Print(...any)                        {}
func (u pprofUI) PrintErr(args ...any)              { u.say("pprof: " + strings.TrimSpace(fmt.Sprint(args...))) }
func (pprofUI) IsTerminal() bool                    { return false }
func (pprofUI) WantBrowser() bool                   { return false }
func (pprofUI) SetAutoComplete(func(string) string) {}
