package kineto

import (
	"slices"
	"strings"
	"testing"
)

// The profiler's steps, which the program marks, count before the optimizers'; of those the one that steps most often.
func TestStepsOfATrace(t *testing.T) {
	const block = `{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":%,"args":{"Bytes":64,"Addr":#,"Device Type":0,"Device Id":-1}}`
	event := func(at, address string) string {
		return strings.NewReplacer("%", at, "#", address).Replace(block)
	}
	step := func(name, at, took string) string {
		return `{"ph":"X","cat":"user_annotation","name":"` + name + `","pid":1,"tid":1,"ts":` + at + `,"dur":` + took + `}`
	}
	optimizers := step("Optimizer.step#SGD.step", "10", "5") + "," + step("Optimizer.step#SGD.step", "30", "5") + "," + step("Optimizer.step#Adam.step", "12", "5")
	blocks := event("1", "100") + "," + event("20", "200") + "," + event("40", "300")
	head := `{"schemaVersion":1,"deviceProperties":[],"traceEvents":[`
	for _, c := range []struct {
		name, events string
		step         int64
		births       []int64
	}{
		{"optimizers alone", optimizers + "," + blocks, 2, []int64{0, 1, 2}},
		{"the profiler's", optimizers + "," + step("ProfilerStep#7", "0", "30") + "," + blocks, 1, []int64{0, 0, 1}},
		{"none", step("forward", "0", "30") + "," + blocks, -1, nil},
	} {
		s, err := decode([]byte(head + c.events + "]}"))
		if err != nil {
			t.Fatal(err)
		}
		if s.Mark.Step != c.step || !slices.Equal(s.Blocks.BirthStep, c.births) {
			t.Errorf("%s: step %d, births %v; want %d, %v", c.name, s.Mark.Step, s.Blocks.BirthStep, c.step, c.births)
		}
	}
}
