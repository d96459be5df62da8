package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff/budget"
)

// budgetFlags are the user's budgets, in order.
type budgetFlags []budget.Budget

// flags adds one flag per meter. Unless rate is nil, --max-growth also takes a rate: growth of leaks that passes.
func (b *budgetFlags) flags(cmd *cobra.Command, rate *rateFlag) {
	for _, m := range budget.Meters() {
		usage := budgetUsage[m]
		if rate == nil {
			usage, _, _ = strings.Cut(usage, "; with a rate")
		}
		cmd.Flags().Var(&budgetFlag{b, m, rate}, "max-"+string(m), usage)
	}
}

// watchedBudgets adds the flags to a command that records. With --watch, broken budgets are reported.
func watchedBudgets(cmd *cobra.Command, b *budgetFlags) {
	b.flags(cmd, nil)
	for _, m := range budget.Meters() {
		f := cmd.Flags().Lookup("max-" + string(m))
		f.Usage = strings.Replace(f.Usage, "fail if", "with --watch, report if", 1)
	}
}

var budgetUsage = map[budget.Meter]string{
	budget.Live:     "fail if more than `[WHERE=]SIZE` is live at the end, such as 12GiB, 90% of the limit, or cuda:0=12GiB; may be repeated",
	budget.Peak:     "fail if more than `[WHERE=]SIZE` is live at any time; WHERE is a device, process, cgroup, or a role of processes",
	budget.Reserved: "fail if the allocator of a device reserves more than `[WHERE=]SIZE`",
	budget.Growth:   "fail if live memory grows by more than `[WHERE=]SIZE` after warm-up, such as 'loader worker=64MiB'; with a rate, such as 4KiB/step, leaks pass if together they grow no faster",
}

// budgetFlag is a flag that adds a budget each time it is given.
type budgetFlag struct {
	list  *budgetFlags
	meter budget.Meter
	rate  *rateFlag
}

func (f *budgetFlag) String() string { return "" }

// Type is the type of the value in help.
func (f *budgetFlag) Type() string { return "size" }

// Set parses SIZE or WHERE=SIZE, and for growth also a rate.
func (f *budgetFlag) Set(text string) error {
	if f.meter == budget.Growth && f.rate != nil && strings.Contains(text, "/") && !strings.Contains(text, "=") {
		return f.rate.Set(text)
	}
	b, err := budget.Parse(f.meter, text)
	if err == nil {
		*f.list = append(*f.list, b)
	}
	return err
}
