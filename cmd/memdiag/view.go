package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/report"
)

// viewStacks is how many stacks pprof's pages can show without delay.
const viewStacks = 2000

func newViewCommand(env *environment) *cobra.Command {
	noBrowser := false
	var folders []string
	cmd := &cobra.Command{
		Use:     "view [RUN | SNAPSHOT | SNAPSHOT SNAPSHOT …]",
		GroupID: groupLook,
		Short:   "pprof's web pages of one snapshot, or of the growth between two",
		Long: `Serves pprof's flamegraph, graph, top and peek pages of one snapshot's live
memory, or of the growth between two, until it is interrupted. Only this machine
can open them, with the random key in the URL on standard output. On a terminal
it opens a browser.

Source lines are shown only of files below the folders of --source, since a
snapshot may name any file.`,
		Example: `  memdiag view snapshot_0 snapshot_50
  memdiag view my-run --no-browser --source .`,
		ValidArgsFunction: completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := env.openRun(args)
			if err != nil {
				return err
			}
			memory, err := env.profileOf(cmd, run, false, nil)
			if err != nil {
				return err
			}
			memory, left := memory.Largest(viewStacks)
			if left > 0 {
				env.talk.say("pprof shows the %d stacks that changed most; %d smaller ones are left out", viewStacks, left)
			}
			var encoded bytes.Buffer
			if err := report.Pprof(&encoded, memory); err != nil {
				return err
			}
			parsed, err := profile.ParseData(encoded.Bytes())
			if err != nil {
				return err
			}
			say := func(text string) { env.talk.say("%s", text) }
			pages, err := newPprofSite(parsed, pprofPages, say)
			if err != nil {
				return err
			}
			source, end, err := sourceSite(parsed, folders, say)
			if err != nil {
				return err
			}
			defer end()
			site := oneAtATime(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == sourcePage {
					source.ServeHTTP(w, r)
				} else {
					pages.ServeHTTP(w, r)
				}
			}))
			return env.serve(cmd.Context(), site, env.out.tty && !noBrowser)
		},
	}
	env.rankFlag(cmd)
	env.symbolsFlag(cmd)
	cmd.Flags().StringArrayVar(&folders, "source", nil, "show source lines of files below `DIR`, links resolved; may be repeated; by default none")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "never open a browser")
	return cmd
}

// serve serves on a port of the loopback interface until ctx ends, which is no error.
func (env *environment) serve(ctx context.Context, site http.Handler, browse bool) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("no port of this machine: %w", err)
	}
	address := listener.Addr().String()
	key := rand.Text()
	server := &http.Server{Handler: guarded(site, address, key), ReadHeaderTimeout: 10 * time.Second}
	url := "http://" + address + "/" + key + "/"
	fmt.Fprintln(env.stdout, url)
	env.talk.say("serving to this machine alone, until Ctrl-C")
	if browse {
		defer env.browse(ctx, url)()
	}
	var closing sync.WaitGroup
	stop := context.AfterFunc(ctx, func() {
		closing.Add(1)
		defer closing.Done()
		_ = server.Close() // no answer is awaited any more
	})
	defer stop()
	err = server.Serve(listener)
	closing.Wait()
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// browse opens the user's browser, if there is one. Other users can see the words of its command, but not the key: it opens a file that
// only this user may read, which leads to the URL. Call end when nothing is served any more.
func (env *environment) browse(ctx context.Context, url string) (end func()) {
	dir, err := os.MkdirTemp("", "memdiag-view-") // with mode 0700
	if err != nil {
		return func() {} // the URL was printed
	}
	end = func() { _ = os.RemoveAll(dir) }
	page := filepath.Join(dir, "open.html")
	text := fmt.Sprintf(leadingPage, url, url)
	command := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if command == nil {
		command = []string{"xdg-open"}
	}
	opener := exec.CommandContext(ctx, command[0], append(command[1:], page)...)
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil || opener.Start() != nil {
		return end
	}
	go func() { _ = opener.Wait() }() // it ends with ctx at the latest
	return end
}

// leadingPage leads to a URL, automatically or, if a browser asks first, by a link.
const leadingPage = `<!DOCTYPE html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=%s">
<title>memdiag view</title>
<p><a href="%s">memdiag view</a></p>
`

// guarded serves site only below the key, and only for requests with this address as host: another name that resolves to this address
// belongs to another site.
func guarded(site http.Handler, address, key string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'self' 'unsafe-inline' data:; frame-ancestors 'none'; form-action 'none'; base-uri 'none'")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		path, ours := strings.CutPrefix(r.URL.Path, "/"+key)
		switch {
		case r.Host != address, !ours, !strings.HasPrefix(path, "/"):
			http.NotFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "only to be read", http.StatusMethodNotAllowed)
		default:
			http.StripPrefix("/"+key, site).ServeHTTP(w, r)
		}
	})
}
