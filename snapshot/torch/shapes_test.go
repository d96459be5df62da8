package torch

import (
	"bytes"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestADictThatIsAlmostOfAShape puts one that differs after two of a shape, and any two by turns.
func TestADictThatIsAlmostOfAShape(t *testing.T) {
	const (
		begin = "\x80\x04}q\x00(\x8c\x08segmentsq\x01]q\x02}q\x10(\x8c\x06deviceq\x11K\x00\x8c\x07addressq\x12\x8a\x06\x00\x04\x00\x00\x00\x7f\x8c\x0atotal_sizeq\x13K\x20" +
			"\x8c\x06blocksq\x14]q\x15}q\x16(h\x12\x8a\x06\x00\x04\x00\x00\x00\x7f\x8c\x04sizeq\x23K\x20\x8c\x05stateq\x17\x8c\x10active_allocatedq\x18uaua\x8c\x0ddevice_tracesq\x03]q\x04]q\x05("
		first = "}(\x8c\x06actionq\x20\x8c\x05allocq\x21\x8c\x04addrq\x22\x8a\x06\x00\x02\x00\x00\x00\x7fh\x23K\x10\x8c\x06streamq\x24K\x00\x8c\x01cq\x25h\x21u"
		end   = "eau."
	)
	entry := func(action, addr, size, stream, c string) string {
		return "}(h\x20" + action + "h\x22" + addr + "h\x23" + size + "h\x24" + stream + "h\x25" + c + "u"
	}
	addr := "\x8a\x06\x00\x04\x00\x00\x00\x7f"
	dicts := map[string]string{
		"nothing":                       entry("h\x21", addr, "K\x20", "K\x00", "h\x21"),
		"another string":                entry("h\x01", addr, "K\x20", "K\x00", "h\x01"),
		"a list for an action":          entry("h\x02", addr, "K\x20", "K\x00", "h\x21"),
		"nothing stored for an action":  entry("h\xf0", addr, "K\x20", "K\x00", "h\x21"),
		"its own list for an action":    entry("h\x05", addr, "K\x20", "K\x00", "h\x21"),
		"its own list, not looked at":   entry("h\x21", addr, "K\x20", "K\x00", "h\x05"),
		"nothing stored, not looked at": entry("h\x21", addr, "K\x20", "K\x00", "h\xf0"),
		"None for an action":            entry("N", addr, "K\x20", "K\x00", "h\x21"),
		"a text for an action":          entry("\x8c\x05alloc", addr, "K\x20", "K\x00", "h\x21"),
		"a size of two bytes":           entry("h\x21", addr, "M\xff\xff", "K\x00", "h\x21"),
		"a negative size":               entry("h\x21", addr, "J\xff\xff\xff\xff", "K\x00", "h\x21"),
		"a size of nine bytes":          entry("h\x21", addr, "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", "K\x00", "h\x21"),
		"a size of no bytes":            entry("h\x21", addr, "\x8a\x00", "K\x00", "h\x21"),
		"a pair for a size":             entry("h\x21", addr, "K\x01K\x02\x86", "K\x00", "h\x21"),
		"a dict for a size":             entry("h\x21", addr, "}", "K\x00", "h\x21"),
		"an address of another width":   entry("h\x21", "\x8a\x05\x00\x04\x00\x00\xff", "K\x20", "K\x00", "h\x21"),
		"a pair, not looked at":         entry("h\x21", addr, "K\x20", "K\x01K\x02\x86", "h\x21"),
		"a list, not looked at":         entry("h\x21", addr, "K\x20", "]", "h\x21"),
		"an item more":                  entry("h\x21", addr, "K\x20", "K\x00", "h\x21") + "(h\x23K\x07u",
		"the end inside":                "}(h\x20h\x21h\x22" + addr + "u",
		"the same key twice":            entry("h\x21", addr, "K\x20h\x23K\x30", "K\x00", "h\x21"),
		"a list, then the end":          "}(h\x20h\x21h\x22" + addr + "h\x23K\x20h\x24K\x00h\x25]u",
		"a list, then a key":            "}(h\x20h\x21h\x22" + addr + "h\x23K\x20h\x24K\x00h\x25]h\x20h\x21u",
		"a list, then two values":       "}(h\x20h\x21h\x22" + addr + "h\x23K\x20h\x24K\x00h\x25]h\x20h\x21h\x21u",
		"empty":                         "}",
		"empty, and with a mark":        "}(u",
		"empty, with an item added":     "}h\x20h\x21s",
		"empty, in the memo":            "}q\x77",
		"a dict in the memo":            "}q\x77(h\x20h\x21h\x22" + addr + "h\x23K\x20h\x24K\x00h\x25h\x21u",
	}
	other := entry("h\x21", "\x8a\x06\x00\x02\x00\x00\x00\x7f", "K\x40", "K\x00", "h\x21")
	for what, dict := range dicts {
		t.Run(what, func(t *testing.T) {
			compareWithMachine(t, []byte(begin+first+other+dict+strings.Repeat(other, 9)+end))
			for _, behind := range dicts {
				compareWithMachine(t, []byte(begin+first+other+dict+behind+dict+behind+strings.Repeat(other, 9)+end))
			}
		})
	}
	b := []byte(begin + first + strings.Repeat(entry("h\x21", addr, "K\x20", "K\x00", "h\x21"), 9) + end)
	m := newMachine(newInput("file", bytes.NewReader(b), int64(len(b))))
	m.build.allow(int64(len(b)), 0)
	if err := decodePickle(m); err != nil || len(m.quick.shapes.pieces) == 0 {
		t.Errorf("%v, %d pieces of shapes", err, len(m.quick.shapes.pieces))
	}
}

// TestADictOfAsManyKindsAsOneLikes reads one that fits no shape in a time that does not grow with the
// kinds that came before.
func TestADictOfAsManyKindsAsOneLikes(t *testing.T) {
	b := []byte("\x80\x04}(\x8c\x08segments](}(\x8c\x0atotal_sizeK\x20ue\x8c\x0ddevice_traces](](}(")
	for i := range 60 {
		b = append(b, 0x8c, 1, byte(i), 'q', byte(i), 'G', 0, 0, 0, 0, 0, 0, 0, 0) // a float, which no shape has
	}
	b = append(b, 'u')
	for i := range 60 {
		b = append(b, '}', '(', 'h', byte(i), 'N', 'u')
	}
	b = append(b, strings.Repeat("}", 99)+"eeu."...)
	compareWithMachine(t, b)
	m := newMachine(newInput("file", bytes.NewReader(b), int64(len(b))))
	m.build.allow(int64(len(b)), 0)
	if err := decodePickle(m); err != nil || len(m.quick.shapes.first[entry]) != mostBranches || m.build.record.events != 160 {
		t.Errorf("%v, %d kinds, %d events", err, len(m.quick.shapes.first[entry]), m.build.record.events)
	}
}

// TestTheLastHistoryOfABlockCounts has blocks with two under one key, as Python takes the last value of a key.
func TestTheLastHistoryOfABlockCounts(t *testing.T) {
	const (
		begin = "\x80\x04\x8c\x09real_size\x940\x8c\x07history\x940\x8c\x04size\x940\x8c\x05state\x940\x8c\x10active_allocated\x940}(h\x04]\x94\x8c\x08segments](}(" +
			"\x8c\x0atotal_sizeK\x40\x8c\x06blocks]("
		first = "}(h\x02K\x20h\x03h\x04h\x01](}(h\x00K\x10ueh\x01"
		end   = "eueu.                                "
	)
	for last, requested := range map[string]snapshot.Bytes{
		"](}(h\x00K\x11ue": 0x11, "]}(h\x00K\x11ua": 0x11, "](}(h\x02K\x11ue": 0x20, "]": 0x20, "](e": 0x20, "h\x05": 0x20, "N": 0x20,
	} {
		b := []byte(begin + strings.Repeat(first+last+"u", 2) + end)
		compareWithTwin(t, b, pickleTreeLost)
		compareWithMachine(t, b)
		s, err := Decode("file", bytes.NewReader(b), int64(len(b)), Options{})
		if err != nil || s.Blocks.Requested[1] != requested {
			t.Errorf("%q: %v, %v, want %v", last, err, s, requested)
		}
	} // An empty one may be the next block's too.
	const block = "}(h\x02K\x20h\x03h\x04h\x01"
	compareWithMachine(t, []byte(begin+block+"]\x94u"+block+"h\x06u"+end))
	compareWithMachine(t, []byte(begin+block+"]\x94(eu"+block+"h\x06u"+end))
}

// TestTheShortCutRefusesWhatTheMachineRefuses has what no pickler writes.
func TestTheShortCutRefusesWhatTheMachineRefuses(t *testing.T) {
	const (
		begin = "\x80\x04\x8c\x06frames\x940\x8c\x07history\x940\x8c\x04size\x940\x8c\x05state\x940\x8c\x04name\x940\x8c\x06blocks\x940\x8c\x0atotal_size\x940}(\x8c\x08segments]("
		end   = "eu.                                "
	)
	for what, segment := range map[string]string{
		"a history of one that is another block's too": "}(h\x06K\x40h\x05](}(h\x02K\x20h\x01]\x94}(h\x02K\x20uau}(h\x02K\x20h\x01h\x07ueu",
		"… with a mark":                      "}(h\x06K\x40h\x05](}(h\x02K\x20h\x01]\x94(}(h\x02K\x20ueu}(h\x02K\x20h\x01h\x07ueu",
		"a history with nothing to append":   "}(h\x06K\x40h\x05](}(h\x02K\x20h\x01]aueu",
		"a segment that is stored twice":     "}\x94(h\x06K\x40h\x05](}(h\x02K\x20ueu\x94",
		"a segment that is stored":           "}\x94(h\x06K\x40h\x05](}(h\x02K\x20ueu",
		"a string after a list of frames":    "}(h\x06K\x40h\x00](}(h\x04h\x02ueh\x02\x94ah\x05](}(h\x02K\x20ueu",
		"a string that is an item of frames": "}(h\x06K\x40h\x00](}(h\x04h\x02ueh\x02ah\x05](}(h\x02K\x20ueu",
	} {
		t.Run(what, func(t *testing.T) { compareWithMachine(t, []byte(begin+segment+end)) })
	}
}
