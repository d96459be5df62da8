package main

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/fleet"
	"github.com/memdiag/memdiag/fleet/clickhouse"
)

// fromFlag lets a command query a server instead of a folder. Addresses have no flag type of their own, since its errors would show the
// password.
func (f *fleetFolder) fromFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.from, "from", "", "ask the fleet on a ClickHouse server, such as `URL` clickhouse://host/memdiag, in place of a folder")
	completeAddress(cmd, "from")
}

// completeAddress completes the beginning of an address.
func completeAddress(cmd *cobra.Command, flag string) {
	// It fails if the flag is missing or completed twice: a defect that its test finds.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions([]string{clickhouse.Scheme}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// server is the address in a flag, else in --fleet or its variable. It is nil if these name a folder.
func (f *fleetFolder) server(flag string) (*clickhouse.Address, error) {
	if flag == "" {
		if flag = f.folder(); !strings.HasPrefix(flag, clickhouse.Scheme) {
			return nil, nil
		}
	}
	return clickhouse.Parse(flag, f.env.getenv)
}

// place is the fleet's folder or address, without a password.
func (f *fleetFolder) place() string {
	a, err := f.server(f.from)
	switch {
	case err != nil:
		return ""
	case a != nil:
		return a.String()
	}
	return f.folder()
}

// shellPlace is place, quoted for a shell.
func (f *fleetFolder) shellPlace() string {
	if a, err := f.server(f.from); a != nil || err != nil {
		return shellQuote(f.place())
	}
	return shellPath(f.folder())
}

// begin makes a folder a fleet, or checks that a server has one.
func (f *fleetFolder) begin() error {
	a, err := f.server("")
	switch {
	case err != nil:
	case a != nil:
		_, err = awaited(f.env, noNews, func() (bool, error) { return true, fleet.CheckServer(f.ctx, a) })
	default:
		err = fleet.Init(f.folder())
	}
	return f.cannotAdd(err)
}

// store adds a run's tables, and returns what the fleet had about the run before.
func (f *fleetFolder) store(t fleet.Tables) (before fleet.Earlier, err error) {
	a, err := f.server("")
	switch {
	case err != nil:
	case a != nil:
		before, err = awaited(f.env, noNews, func() (fleet.Earlier, error) { return fleet.AddToServer(f.ctx, a, t) })
	default:
		before, err = fleet.Add(f.folder(), t)
	}
	return before, f.cannotAdd(err)
}

// cannotAdd is an error of the fleet itself. It gets the exit code for memdiag's own errors, unless it has a code already.
func (f *fleetFolder) cannotAdd(err error) error {
	if err == nil {
		return nil
	}
	if err = fleetError(err); (exitCode(err) == exitOwn || ofWriting(err)) && !strings.HasPrefix(f.folder(), clickhouse.Scheme) {
		err = cannotWrite(f.folder(), err)
	}
	return &fleetFault{err}
}

// ofWriting reports whether an error is from a write. A missing folder or permission is then not bad input.
func ofWriting(err error) bool {
	at, path := errors.AsType[*os.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	return path && at.Op == "mkdir" || link
}

func toFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "to", "", "the `URL` of the server, such as clickhouse://host:8123/memdiag")
	completeAddress(cmd, "to")
}

const aboutAddress = `The address is clickhouse://USER@HOST:PORT/DATABASE, with the port for HTTP. By default
the port is 8123, or 8443 with ?secure=true, and the database memdiag. The variables
CLICKHOUSE_USER and CLICKHOUSE_PASSWORD say who asks.`

func newFleetInitCommand(f *fleetFolder) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "init --to URL",
		Short: "make the tables of a fleet on a ClickHouse server or cluster",
		Long: `Makes a database, the fleet's tables in it, and a view of each for queries. What is
there stays; columns that an older memdiag did not know are added.

` + aboutAddress + `
For a cluster name all its servers, and by ?cluster= what remote_servers in their
configuration calls it. Rows of a run then lie on one of its shards.`,
		Example: `  memdiag fleet init --to clickhouse://db.example.com/memdiag
  memdiag fleet init --to 'clickhouse://db1,db2,db3/memdiag?cluster=three'`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return usagef(cmd, "--to names the server")
			}
			a, err := f.server(to)
			if err != nil {
				return fleetError(err)
			}
			_, err = awaited(f.env, noNews, func() (bool, error) { return true, fleet.InitServer(f.ctx, a) })
			if err != nil {
				return fleetError(err)
			}
			f.env.talk.say("the tables are in %s", a)
			f.env.talk.next("fleet push --to " + shellQuote(a.String()))
			return nil
		},
	}
	toFlag(cmd, &to)
	return cmd
}

func newFleetPushCommand(f *fleetFolder) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "push --to URL",
		Short: "copy the runs that a ClickHouse server lacks to it",
		Long: `Inserts the runs of the fleet's folder that the server does not have, or has an earlier
state of. A run counts when all of it is there: what a push that was cut off left
counts nowhere, and the next push sends that run again. Nothing counts twice.

` + aboutAddress + ` Of several hosts
the first that answers is taken.`,
		Example: `  memdiag fleet push --to clickhouse://db.example.com/memdiag
  memdiag fleet push --fleet /shared/fleet --to 'clickhouse://db1,db2/memdiag?cluster=three'`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return usagef(cmd, "--to names the server")
			}
			a, err := f.server(to)
			if err != nil {
				return fleetError(err)
			}
			began := time.Now()
			pushed, err := awaited(f.env, noNews, func() (fleet.Pushed, error) {
				return fleet.Push(f.ctx, f.folder(), a, func(done, of int) { f.env.talk.progress("pushed %d of %d runs", done, of) })
			})
			f.env.talk.clear()
			if err != nil {
				if !errors.As(err, new(*fleet.MovedError)) && pushed.Runs > 0 {
					f.env.talk.say("%d runs were pushed", pushed.Runs)
				}
				return fleetError(err)
			}
			f.env.talk.say("pushed %d runs to %s in %s; %d were there", pushed.Runs, a, duration(time.Since(began)), pushed.Before)
			f.env.talk.next("fleet leaks --from " + shellQuote(a.String()))
			return nil
		},
	}
	toFlag(cmd, &to)
	return cmd
}

func (f *fleetFolder) compactServer(a *clickhouse.Address) error {
	n, err := awaited(f.env, noNews, func() (int, error) { return fleet.CompactServer(f.ctx, a, f.env.now()) })
	if err != nil {
		return fleetError(err)
	}
	if n == 0 {
		f.env.talk.say("there is nothing to delete")
		return nil
	}
	f.env.talk.say("the servers delete the rows of %d pushes", n)
	return nil
}
