package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/engine/gpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

func newDevicesCommand(env *environment) *cobra.Command {
	format := textOrJSON()
	var output string
	cmd := &cobra.Command{
		Use:     "devices",
		GroupID: groupMore,
		Short:   "list the devices that record can train on",
		Long: `Lists the devices that record --backend can train on: the processor, and the
devices of this machine's Vulkan drivers. --backend gpu takes the first of these.
MEMDIAG_GPU chooses another, by a part of its name or by its number from 0. For a
device that cannot be used the list says why.`,
		Example: `  memdiag devices
  MEMDIAG_GPU=llvmpipe memdiag record --workload L30 --backend gpu`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			asJSON, err := textFormat(cmd, output, format)
			if err != nil {
				return err
			}
			rows := devices()
			return env.result(output, false, func(w io.Writer) error {
				if asJSON {
					out := json.NewEncoder(w)
					out.SetIndent("", "  ")
					return out.Encode(deviceListJSON{1, rows})
				}
				return devicesText(w, rows)
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(&format, "format", "format on standard output: text or json")
	flags.StringVarP(&output, "output", "o", "", "write to `FILE`; .json gives JSON")
	return cmd
}

type deviceListJSON struct {
	SchemaVersion int          `json:"schema_version"`
	Devices       []deviceJSON `json:"devices"`
}

type deviceJSON struct {
	Backend string `json:"backend"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	Driver  string `json:"driver"`
	// The size of the memory that segments are allocated from; null if unknown.
	Memory *snapshot.Bytes `json:"memory"`
	Budget *snapshot.Bytes `json:"budget"` // what the driver allows this process now
	// Unusable is why it cannot be used for training; "" if it can.
	Unusable string `json:"unusable,omitempty"`
	Hint     string `json:"hint,omitempty"` // the way out of that, if known
}

// devices lists the backends' devices. If there is no GPU, a single row for that backend says why.
func devices() []deviceJSON {
	rows := []deviceJSON{{Backend: "cpu", Name: mem.Host().Name()}}
	infos, err := gpu.List()
	if err != nil {
		return append(rows, deviceJSON{Backend: "gpu", Unusable: err.Error(), Hint: hintOf(err)})
	}
	for _, i := range infos {
		row := deviceJSON{
			Backend: "gpu", Name: i.Name, Type: string(i.Type), Driver: i.Driver,
			Memory: known(i.Memory), Budget: known(i.Budget),
		}
		if i.Unusable != nil {
			row.Unusable, row.Hint = i.Unusable.Error(), hintOf(i.Unusable)
		}
		rows = append(rows, row)
	}
	return rows
}

func known(b snapshot.Bytes) *snapshot.Bytes {
	if b == snapshot.Unknown {
		return nil
	}
	return &b
}

func devicesText(w io.Writer, rows []deviceJSON) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "backend\tdevice\ttype\tmemory\tbudget\tdriver")
	for _, r := range rows {
		if r.Name == "" {
			fmt.Fprintf(table, "%s\tnone: %s\n", r.Backend, r.Unusable)
		} else {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Backend, r.Name, orDash(r.Type), bytesOrDash(r.Memory), bytesOrDash(r.Budget), orDash(r.Driver))
			if r.Unusable != "" {
				fmt.Fprintf(table, "\tunusable: %s\n", r.Unusable)
			}
		}
		if r.Hint != "" {
			fmt.Fprintf(table, "\thint: %s\n", r.Hint)
		}
	}
	return table.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func bytesOrDash(b *snapshot.Bytes) string {
	if b == nil {
		return "-"
	}
	return b.String()
}
