package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/report/metrics"
	"github.com/memdiag/memdiag/watch"
)

// exports are the destinations of a watched run's metrics.
type exports struct {
	listen, textfile string
	push             urlFlag
	lingers          time.Duration
	page             metrics.Page
	rendered         bool // whether the page has metrics
}

func (e *exports) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&e.listen, "listen", "", "serve metrics for Prometheus at `ADDRESS`, such as 127.0.0.1:9760; with :9760, to other machines too")
	flags.DurationVar(&e.lingers, "linger", time.Minute, "how long to serve the last metrics after the run has ended")
	flags.Var(&e.push, "push", "send metrics to this `URL` every 15 seconds by Prometheus' remote write, such as http://prometheus:9090/api/v1/write; $"+pushVariable+" is the header Authorization")
	flags.StringVar(&e.textfile, "textfile", "", "write metrics to `FILE`.prom at each check, for node_exporter")
	_ = cmd.MarkFlagFilename("textfile", "prom")
}

// open starts to serve, if requested. Call stop when nothing is served any more.
func (e *exports) open(cmd *cobra.Command, env *environment) (stop func(), err error) {
	if e.textfile != "" && filepath.Ext(e.textfile) != ".prom" {
		return nil, usagef(cmd, "--textfile %s: node_exporter reads files that end in .prom", e.textfile)
	}
	if e.textfile != "" {
		if err := replaceable(e.textfile); err != nil {
			return nil, err
		}
	}
	pushed := func() {}
	if e.push.URL != nil {
		pusher := &watch.Pusher{URL: e.push.URL, Authorization: env.getenv(pushVariable), Known: e.page.Families, Failed: func(what string) { env.talk.say("%s", what) }}
		if err := pusher.Start(); err != nil {
			return nil, usagef(cmd, "--push: %v", err)
		}
		pushed = pusher.Close
	}
	if e.listen == "" {
		if cmd.Flags().Changed("linger") {
			return nil, usagef(cmd, "--linger needs --listen")
		}
		return pushed, nil
	}
	served, err := e.serve(cmd, env)
	if err != nil {
		pushed()
		return nil, err
	}
	return func() {
		pushed()
		served()
	}, nil
}

// pushVariable has a secret, which the command line would show to every user of the machine.
const pushVariable = "MEMDIAG_PUSH_AUTHORIZATION"

// serve starts to serve.
func (e *exports) serve(cmd *cobra.Command, env *environment) (stop func(), err error) {
	host, _, err := net.SplitHostPort(e.listen)
	if err != nil {
		return nil, usagef(cmd, "--listen %s: want an address with a port, such as 127.0.0.1:9760", e.listen)
	}
	listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", e.listen)
	if err != nil {
		return nil, &exitError{exitOwn, withHint(fmt.Errorf("--listen: %w", err), "choose another port, or see who has it: ss -ltnp")}
	}
	alone := loopback(listener.Addr())
	server := &http.Server{Handler: e.site(host, alone), ReadHeaderTimeout: answerWithin, ReadTimeout: answerWithin, WriteTimeout: answerWithin, MaxHeaderBytes: 16 << 10}
	done := make(chan struct{})
	go func() {
		_ = server.Serve(listener) // it ends with server.Close
		close(done)
	}()
	whom := "this machine alone"
	if !alone {
		whom = "every machine that reaches this one; paths and names of processes are in them"
	}
	env.talk.say("metrics are at http://%s/metrics, for %s", listener.Addr(), whom)
	return func() {
		_ = server.Close()
		<-done
	}, nil
}

// answerWithin bounds a request; a page is small.
const answerWithin = 10 * time.Second

// loopback reports whether an address can be reached from this machine only.
func loopback(at net.Addr) bool {
	tcp, ok := at.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// site is the page of metrics. If it is served to this machine alone, it accepts only hosts that name this machine: another name that
// resolves to it belongs to another site, which a browser would let read the page.
func (e *exports) site(host string, alone bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", e.page.Handler())
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "memdiag watch\n\nmetrics: /metrics\n")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if alone && !local(r.Host, host) {
			http.Error(w, "no such site", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// local reports whether a request's host is this machine: by number, as localhost, or by the name that the user gave.
func local(asked, host string) bool {
	name := asked
	if h, _, err := net.SplitHostPort(asked); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	ip := net.ParseIP(name)
	return name == "localhost" || name == host || ip != nil && ip.IsLoopback()
}

// put renders a look. Until it is done, readers get the previous page.
func (e *exports) put(env *environment, dir string, look *watch.Look) error {
	if e.listen == "" && e.textfile == "" && e.push.URL == nil {
		return nil
	}
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	looks, here := make([]metrics.Look, 0, len(look.Ranks)), workingFolder()
	for i := range look.Ranks {
		r := &look.Ranks[i]
		looks = append(looks, metrics.Look{
			Name: filepath.Base(dir), Run: r.Run, Rank: r.Number(), Result: r.Result, Leaks: r.Leaks, Budgets: r.Budgets,
			Root: here, At: look.Time, Took: look.Took, Ended: look.Ended,
		})
	}
	all := metrics.Of(looks...)
	if err := e.page.Set(all); err != nil {
		return err
	}
	e.rendered = true
	if e.textfile == "" {
		return nil
	}
	err := env.writeFile(e.textfile, func(w io.Writer) error { return metrics.Text(w, all) })
	if err != nil && !look.Ended {
		env.talk.fail(err) // a full disk may have room again, so the watch goes on
		return nil
	}
	return err
}

// linger serves the last page for a while after the run has ended.
func (e *exports) linger(ctx context.Context, env *environment) {
	if e.listen == "" || !e.rendered || e.lingers <= 0 || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	env.talk.say("the run has ended; its metrics are served for %v more (--linger)", e.lingers)
	select {
	case <-ctx.Done():
	case <-time.After(e.lingers):
	}
}
