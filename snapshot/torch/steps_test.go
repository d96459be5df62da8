package torch

import (
	"strings"
	"testing"
)

// Each of these took a tenth of a second for each MB, or asked for ten times the time that its steps
// were taken for. They count what keeps compressed files from doing that by the gigabyte.
func TestStepsAreCounted(t *testing.T) {
	const (
		inList = `{"segments":[],"a":[`
		frames = "\x80\x04}(\x8c\x08segments]\x8c\x01x](\x8c\x06frames\x94}(\x8c\x04name\x8c\x01fu\x94e\x8c\x0ddevice_traces](]("
		texts  = "\x80\x04}(\x8c\x08segments]"
	)
	hundred := func(piece string) string { return strings.Repeat(piece, 100) }
	for _, c := range []struct {
		name, begin, piece string
		decode             func(*machine) error
		least              int64 // steps of a piece
	}{
		{"escapes of a letter", `{"segments":[],"a":"`, `\n`, decodeJSON, 1},
		{"escapes of digits", `{"segments":[],"a":"`, `\u0041`, decodeJSON, 2},
		{"long texts", inList, `"` + strings.Repeat("a", 1<<20) + `",`, decodeJSON, 1 << 17},
		{"words", inList, "null,", decodeJSON, 5},
		{"long numbers", inList, hundred("1") + ",", decodeJSON, 25},
		{"escapes of protocol 0", texts, "V" + hundred(`\u`) + "\n0", decodePickle, 100},
		{"frames that no short cut reads", frames, "}(h\x00](" + hundred("h\x01") + "NeNNu", decodePickle, 250},
		{"past tenants", "\x80\x04}(\x8c\x08segments](}(\x8c\x06blocks](}(\x8c\x04size\x94K\x01\x8c\x07history\x94](}(h\x00K\x01ueu", "}(h\x00K\x01h\x01](" + hundred("}(h\x00K\x01u") + "eu", decodePickle, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			const times = 1000
			text := c.begin + strings.Repeat(c.piece, max(1, min(times, 4<<20/len(c.piece))))
			m := newMachine(newInput("f", strings.NewReader(text), int64(len(text))))
			m.build.allow(int64(len(text)), 0)
			if err := c.decode(m); err == nil || !strings.Contains(err.Error(), cutReason) {
				t.Fatalf("got %v", err)
			}
			pieces := int64(len(text)-len(c.begin)) / int64(len(c.piece))
			if got := m.in.steps / pieces; got < c.least {
				t.Errorf("%d steps a piece, want %d", got, c.least)
			}
		})
	}
}

func TestInts(t *testing.T) {
	opaque := value{k: vOpaque}
	for text, want := range map[string]value{
		"0": {vInt, 0}, "-0": {vInt, 0}, "007": {vInt, 7}, "-7": {vInt, 1<<64 - 7},
		"18446744073709551615": {vInt, 1<<64 - 1}, "18446744073709551616": opaque, "99999999999999999999": opaque, "36893488147419103233": opaque,
		"-9223372036854775808": {vInt, 1 << 63}, "-9223372036854775809": opaque, "-18446744073709551616": opaque,
	} {
		if got, ok := parseInt([]byte(text)); !ok || got != want {
			t.Errorf("%s: got %v, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "-", "--1", "+1", "1_0", "1.", "0x1"} {
		if got, ok := parseInt([]byte(text)); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestAWordThatTheFileCutsOff(t *testing.T) {
	for text, want := range map[string]string{"nul": cutReason, "-": cutReason, "nul]": "'n' where a value should be", "-,": "'-' where a value should be"} {
		text = `{"segments": [], "a": [` + text
		if _, err := Decode("f", strings.NewReader(text), int64(len(text)), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
