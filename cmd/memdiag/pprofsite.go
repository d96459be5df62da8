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

// pprofPages are those of pprof's pages that are served: not the ones that save
// and delete settings in the user's folder, nor disassembly, for which there is no
// program. The page of source lines is apart, in sourceSite.
var pprofPages = []string{"/", "/flamegraph", "/graph", "/top", "/peek", "/download"}

// oneAtATime serves so: pprof's settings are global.
func oneAtATime(site http.Handler) http.Handler {
	var one sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		site.ServeHTTP(w, r)
	})
}

// newPprofSite returns some of pprof's pages of one profile. What pprof has to say to a
// person goes to say.
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

// StringList defines a flag that may be given several times; none ever is.
func (pprofFlags) StringList(string, string, string) *[]*string { return new([]*string) }

// ExtraUsage is of no use without a command line.
func (pprofFlags) ExtraUsage() string { return "" }

// AddExtraUsage is of no use without a command line.
func (pprofFlags) AddExtraUsage(string) {}

// Parse asks for the web pages of the one profile. The address is not used. With a prefix to
// trim, which no name has, pprof does not guess one by the current folder's name, nor look for
// files above that.
func (f pprofFlags) Parse(func()) []string {
	if err := f.FlagSet.Parse([]string{"-http=localhost:1", "-no_browser", "-symbolize=none", "-trim_path=/memdiag trims nothing"}); err != nil {
		return nil // pprof then ends with its own error
	}
	return []string{"memory"}
}

// given fetches one profile, whatever is asked for.
type given struct{ p *profile.Profile }

func (g given) Fetch(string, time.Duration, time.Duration) (*profile.Profile, string, error) {
	return g.p, "", nil
}

// noSymbols leaves a profile, whose frames all have names, as it is.
type noSymbols struct{}

func (noSymbols) Symbolize(string, pprof.MappingSources, *profile.Profile) error { return nil }

// noPrograms opens no program: none made these stacks.
type noPrograms struct{}

func (noPrograms) Open(string, uint64, uint64, uint64, string) (pprof.ObjFile, error) {
	return nil, errors.New("no program")
}

func (noPrograms) Disasm(string, uint64, uint64, bool) ([]pprof.Inst, error) {
	return nil, errors.New("no program")
}

// pprofUI hands on what pprof says of errors, and nothing else.
type pprofUI struct{ say func(string) }

func (pprofUI) ReadLine(string) (string, error)     { return "", io.EOF }
func (pprofUI) Print(...any)                        {}
func (u pprofUI) PrintErr(args ...any)              { u.say("pprof: " + strings.TrimSpace(fmt.Sprint(args...))) }
func (pprofUI) IsTerminal() bool                    { return false }
func (pprofUI) WantBrowser() bool                   { return false }
func (pprofUI) SetAutoComplete(func(string) string) {}
