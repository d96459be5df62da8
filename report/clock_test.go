package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// TestARunByTheClockIsToldInTime shows the pyramid run as one that counts no steps and
// takes 90 minutes, in which 50 blocks leak.
func TestARunByTheClockIsToldInTime(t *testing.T) {
	run := pyramid()
	for _, s := range run.Snapshots {
		s.Mark.Time = s.Mark.Time.Add(time.Duration(s.Mark.Step) * 107 * time.Second)
		s.Mark.Step, s.Mark.Epoch = snapshot.NoStep, snapshot.NoStep
		s.Blocks.BirthStep = nil
	}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	text := string(rendered(t, func(b *bytes.Buffer) error { return Text(b, r, TextOptions{}) }))
	for _, want := range []string{
		"1 leak: +16.7 MiB/hour allocated", "+33.3 blocks/hour", "Runs out: 4.96 days after the last snapshot (", "of 2.00 GiB on cuda:0",
		"leaks slower than 1 block every ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	for _, not := range []string{"/step", "/snapshot", " a step", " steps", "step -1"} {
		if strings.Contains(text, not) {
			t.Errorf("the text has %q:\n%s", not, text)
		}
	}
	plot := string(rendered(t, func(b *bytes.Buffer) error { return Plot(b, SVG, r, PlotOptions{}) }))
	if !strings.Contains(plot, "minutes 0 to 90") || !strings.Contains(plot, "days after the last snapshot") {
		t.Error("the plot is not in minutes, or does not tell when memory runs out")
	}
	page := string(rendered(t, func(b *bytes.Buffer) error { return Page(b, r, About{}) }))
	if !strings.Contains(page, `"axis":"minute"`) || !strings.Contains(page, "4.96 days") || strings.Contains(page, "step -1") {
		t.Error("the page is not in minutes")
	}
	if strings.Contains(page, "there is no forecast") {
		t.Error("the page says that there is no forecast, which it has")
	}
	slow := diff.Rate{Unit: diff.Second, Bytes: trend.Slope{Value: 0.6, Low: 0.5, High: 0.7, N: 20}}
	if got := strings.ReplaceAll(rateText(slow, false), noBreak, " "); !strings.Contains(got, " an hour (95 %") {
		t.Errorf("%q has no hour", got)
	}
	slow.Blocks = trend.Slope{Value: 2, Low: 1, High: 3, N: 20}
	rare := diff.Rate{Unit: diff.Step, Blocks: trend.Slope{Value: 0.03125, Low: 0.0308, High: 0.0317, N: 20}, Bytes: trend.Slope{Value: 3072, Low: 3071, High: 3073, N: 20}}
	if got := strings.ReplaceAll(rateText(rare, false), noBreak, " "); got != "+0.0308 to +0.0317 blocks a step (95 % interval, n = 20)" {
		t.Error(got)
	}
	if got := rateText(slow, true); strings.Contains(got, "block") {
		t.Errorf("%q has blocks that nobody counted", got)
	}
	var out resultJSON
	if err := json.Unmarshal(rendered(t, func(b *bytes.Buffer) error { return JSON(b, r) }), &out); err != nil {
		t.Fatal(err)
	}
	f := out.Findings[0]
	if f.Rate.Unit != "second" || out.Least != 0 || out.LeastTime < 108 || f.RunsOut == nil || f.RunsOut.Step != nil || f.RunsOut.After == nil {
		t.Errorf("unit %s, least %d steps and %g s, runs out %+v", f.Rate.Unit, out.Least, out.LeastTime, f.RunsOut)
	}
	sheet := string(rendered(t, func(b *bytes.Buffer) error { return Sheet(b, SVG, r, PlotOptions{}) }))
	if !strings.Contains(sheet, "+16.7 MiB/hour") {
		t.Error("the sheet tells no rate by the hour")
	}
}

// TestARunInTheProcessIsToldAgainstWhatItMayTake gives the pyramid run, as one on the CPU, a
// process of which the machine tells what is left.
func TestARunInTheProcessIsToldAgainstWhatItMayTake(t *testing.T) {
	run := pyramid()
	for _, s := range run.Snapshots {
		s.Devices[0].Kind, s.Devices[0].Limit = snapshot.CPU, snapshot.Unknown
		s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: 3 * snapshot.GiB, Meters: snapshot.Meters{Driver: snapshot.GiB}})
	}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	text := string(rendered(t, func(b *bytes.Buffer) error { return Text(b, r, TextOptions{}) }))
	if !strings.Contains(strings.Join(strings.Fields(text), " "), "of 3.00 GiB (available memory)") {
		t.Errorf("the text does not tell against what:\n%s", text)
	}
	if page := string(rendered(t, func(b *bytes.Buffer) error { return Page(b, r, About{}) })); strings.Contains(page, "there is no forecast") {
		t.Error("the page says that there is no forecast")
	}
	f := &r.Findings[0]
	if got := runsOutText(r, f); strings.Contains(got, "from this leak alone") {
		t.Errorf("%q, and nothing else grows", got)
	}
	r.Reserves = []diff.Reserve{{Meter: cause.Host}}
	if got := runsOutText(r, f); !strings.Contains(got, "(available memory), from this leak alone;") {
		t.Errorf("%q, and the process grows besides", got)
	}
	r.Reserves, r.Findings = nil, append(r.Findings, *f)
	if got := runsOutText(r, &r.Findings[0]); !strings.Contains(got, "(available memory), from this leak alone;") {
		t.Errorf("%q, and there is another leak", got)
	}

	// Nodes of the graph behind losses that are kept grow by more than these, and not by enough to be told.
	for i, s := range run.Snapshots {
		s.Devices[1].Meters.Allocated = s.Devices[0].Meters.Allocated + snapshot.GiB + snapshot.Bytes(i*i)*snapshot.MiB
	}
	if r, err = diff.Analyze(run, diff.ByTrend); err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(runsOutText(r, &r.Findings[0]), noBreak, " "); !strings.Contains(got, "from this leak alone; after warm-up the process grew by another 99.0 MiB;") {
		t.Errorf("%q, and the process grows by more", got)
	}
	r.Findings[0].Nodes = &diff.Reserve{Growth: 60 * snapshot.MiB}
	if got := runsOutText(r, &r.Findings[0]); strings.Contains(got, "the process grew") {
		t.Errorf("%q, and that is the finding's graph", got)
	}
}

func TestWhatDecidesAFindingIsToldInStepsAndSnapshots(t *testing.T) {
	run := pyramid()
	run.Snapshots = run.Snapshots[:2]
	for _, s := range run.Snapshots {
		s.Blocks.BirthStep = nil
	}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	text := string(rendered(t, func(b *bytes.Buffer) error { return Text(b, r, TextOptions{}) }))
	_, after, _ := strings.Cut(strings.ReplaceAll(text, noBreak, " "), "\nTo decide: ")
	if got, _, _ := strings.Cut(after, "\n"); got != "about 20 more steps and 4 more snapshots" {
		t.Errorf("%q\n%s", got, text)
	}
}

func TestATimeIsRoundedAndNotCut(t *testing.T) {
	if got := wholeNumber(6.97); got != "7" {
		t.Errorf("a mark at 6.97 s stands at %s", got)
	}
}

func TestNoRateIsNotToldByTheHour(t *testing.T) {
	for want, bytes := range map[string]float64{"0 B/second": 0, "+3.52 KiB/hour": 1} {
		if got := bytesRate(diff.Rate{Unit: diff.Second, Bytes: trend.Slope{Value: bytes, Low: bytes, High: bytes}}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
