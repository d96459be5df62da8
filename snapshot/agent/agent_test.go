package agent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/agent"
	"github.com/memdiag/memdiag/snapshot/totals"
	"github.com/memdiag/memdiag/snapshot/totals/totalstest"
)

// good is a snapshot of two devices: three storages by two lines, and a line of
// Python's heap.
const good = `{"memdiag_agent":1,"producer":"PyTorch 2.15","step":8,"rank":1,"phase":"train","epoch":3,"batch":32,"length":512,"time_us":1700000000000000,"waited_us":2500000,"awaits_steps":true,
"devices":[{"kind":"cpu","index":0,"name":"tensor storages","space":77,"meters":{"allocated":900}},
{"kind":"python","index":0,"name":"Python heap","space":0,"limit":8000,"meters":{}}],
"frames":[["f","a.py",3],["main","a.py",9],["","b.py",5]],"stacks":[[],[0,1],[1],[2]],
"blocks":{"device":[0,1,0,0],"address":[512,0,128,256],"size":[400,70,200,300],"stack":[1,3,1,2],"birth":[7,-1,0,3],"count":[1,5,2,1]},
"holders":[{"stack":1,"path":"__main__.kept","kind":"list","items":3,"counted":5}],"at":[1,3],"events":{"epoch":4},"anew":[3],"native":[2],"notes":["a note"]}`

func decode(data []byte) (*snapshot.Snapshot, error) {
	return agent.Decode("x.json", bytes.NewReader(data), int64(len(data)), totals.Options{})
}

func TestASnapshotIsReadAsItWasWritten(t *testing.T) {
	s, err := decode([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if !s.AwaitsSteps || s.Mark.Step != 8 || s.Rank != 1 || s.Mark.Phase != "train" || s.Mark.Epoch != 3 || s.Mark.Time.Unix() != 1700000000 || s.Producer != "PyTorch 2.15" || len(s.Notes) != 1 {
		t.Errorf("%+v", s)
	}
	if s.Mark.BatchElements != 32*512 || s.Mark.SequenceLength != 512 {
		t.Errorf("the size of the input: %+v", s.Mark)
	}
	if len(s.Devices) != 2 || s.Devices[0].Meters.Allocated != 900 || s.Devices[1].Meters.Allocated != 70 || s.Devices[0].Meters.Driver != snapshot.Unknown {
		t.Errorf("devices: %+v", s.Devices)
	}
	if s.Devices[0].Limit != snapshot.Unknown || s.Devices[1].Limit != 8000 {
		t.Errorf("limits: %+v", s.Devices)
	}
	sites := s.Sites()
	if len(sites) != 3 || sites[0].Bytes != 600 || sites[0].Count != 3 {
		t.Fatalf("sites: %+v", sites)
	}
	if f := s.Stacks.Frames(sites[0].Stack); len(f) != 2 || f[0] != (snapshot.Frame{Function: "f", File: "a.py", Line: 3}) {
		t.Errorf("the first site is at %v", f)
	}
	if len(s.Holders) != 1 || s.Holders[0].Path != "__main__.kept" || s.Holders[0].Stack != sites[0].Stack || s.Holders[0].Items != 3 || s.Holders[0].Counted != 5 {
		t.Errorf("holders: %+v", s.Holders)
	}
	if len(s.At) != 2 || s.At[0] != sites[0].Stack || s.Stacks.Frames(s.At[1])[0].File != "b.py" {
		t.Errorf("threads are at %v", s.At)
	}
	if len(s.Anew) != 1 || s.Anew[0] != s.At[1] {
		t.Errorf("larger ones are made at %v", s.Anew)
	}
	if len(s.Native) != 1 || s.Stacks.Frames(s.Native[0])[0].Function != "main" {
		t.Errorf("native memory grows at %v", s.Native)
	}
	if s.Waited != 2500*time.Millisecond {
		t.Errorf("waited %s", s.Waited)
	}
	if len(s.Events) != 1 || s.Events["epoch"] != 4 {
		t.Errorf("events: %v", s.Events)
	}
}

func TestSecretsInKeysTitlesAndNotesAreMasked(t *testing.T) {
	const key = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
	text := good
	for _, with := range [][2]string{
		{`"__main__.kept"`, `"__main__.sessions['` + key + `'].kept['plain']"`},
		{`["f","a.py",3]`, `["__main__.by_token['` + key + `']","a.py",3]`},
		{`"a note"`, `"it was called with --token=` + key + `"`},
		{`"rank":1`, `"rank":1,"role":"train --token ` + key + `"`},
	} {
		text = strings.Replace(text, with[0], with[1], 1)
	}
	s, err := decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Holders[0].Path; got != "__main__.sessions['***63ae'].kept['plain']" {
		t.Errorf("a holder is %s", got)
	}
	if got := s.Stacks.Frames(s.Holders[0].Stack)[0].Function; got != "__main__.by_token['***63ae']" {
		t.Errorf("a function is %s", got)
	}
	if strings.Contains(s.Role+s.Notes[0], key) || s.Role == "" {
		t.Errorf("%q, %q", s.Role, s.Notes)
	}
}

func TestCategoriesFollowTheirBlocks(t *testing.T) {
	s, err := decode([]byte(strings.Replace(good, `"count":[1,5,2,1]`, `"category":[1,0,3,4]`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for row, address := range s.Blocks.Address {
		want := map[uint64]snapshot.Category{512: snapshot.Parameter, 128: snapshot.Gradient, 256: snapshot.OptimizerState}[address]
		if got := s.Blocks.Category[row]; got != want {
			t.Errorf("the block at %d is a %q, want %q", address, got, want)
		}
	}
	if s, err := decode([]byte(good)); err != nil || s.Blocks.Category != nil {
		t.Errorf("%v, %v of a file without categories", s.Blocks.Category, err)
	}
}

func TestWhatTheAgentCannotHaveWrittenIsRefused(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"a layout of another version", `agent":1`, `agent":2`, "version 2"},
		{"a text that ends early", `"notes":["a note"]}`, ``, "the file ends in the middle"},
		{"a column that is too short", `"size":[400,70,200,300]`, `"size":[400,70,200]`, "differ in length"},
		{"counts that are too few", `"count":[1,5,2,1]`, `"count":[1]`, "differ in length"},
		{"a block of negative size", `[400,70`, `[-1,70`, "-1 bytes"},
		{"a block of more than there is", `[400,70`, `[9007199254740992,70`, "bytes"},
		{"a row of no blocks", `[1,5,2,1]`, `[1,0,2,1]`, "block"},
		{"a device that is not there", `"device":[0,1`, `"device":[0,2`, "device 2 of 2"},
		{"a stack that is not there", `"stack":[1,3`, `"stack":[1,4`, "stack 4 of 4"},
		{"a frame that is not there", `[0,1],[1]`, `[0,3],[1]`, "frame 3 of 3"},
		{"a holder of no stack", `{"stack":1,`, `{"stack":-1,`, "stack -1 of 4"},
		{"a thread at no stack", `"at":[1,3]`, `"at":[1,4]`, "a thread is at stack 4 of 4"},
		{"larger blocks of no stack", `"anew":[3]`, `"anew":[-1]`, "larger blocks are of stack -1 of 4"},
		{"native memory of no stack", `"native":[2]`, `"native":[4]`, "native memory is of stack 4 of 4"},
		{"categories that are too few", `"count":[1,5,2,1]`, `"category":[1]`, "differ in length"},
		{"a category that is none", `"count":[1,5,2,1]`, `"category":[1,2,77,0]`, "category 77 of 10"},
		{"a category below all", `"count":[1,5,2,1]`, `"category":[1,2,-1,0]`, "category -1 of 10"},
		{"a category of a block elsewhere that is none", `"holders":[`, `"categories":[[512,10]],"holders":[`, "category 10 of 10"},
		{"a block elsewhere of no category", `"holders":[`, `"categories":[[512]],"holders":[`, "category 0 of 10"},
		{"an address that is no number", `[512,`, `["512",`, "not read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			if text == good {
				t.Fatalf("no %s", c.old)
			}
			_, err := decode([]byte(text))
			format, ok := errors.AsType[*snapshot.FormatError](err)
			if !ok || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "x.json") {
				t.Errorf("%v (%v), want %q in one line with the file", err, format, c.want)
			}
		})
	}
}

// twin adds up what a text holds by device, plainly.
func twin(data []byte) (bytes, count map[int]int64) {
	var d struct {
		Blocks struct{ Device, Size, Count []int64 }
	}
	if json.NewDecoder(strings.NewReader(string(data))).Decode(&d) != nil {
		return nil, nil
	}
	bytes, count = make(map[int]int64), make(map[int]int64)
	for i, device := range d.Blocks.Device {
		bytes[int(device)] += d.Blocks.Size[i]
		n := int64(1)
		if d.Blocks.Count != nil {
			n = d.Blocks.Count[i]
		}
		count[int(device)] += n
	}
	return bytes, count
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(strings.Replace(good, `,"count":[1,5,2,1]`, "", 1)))
	f.Add([]byte(`{"memdiag_agent":1,"blocks":{}}`))
	f.Add([]byte(`{"memdiag_agent":1,"devices":[{}],"stacks":[[]],"blocks":{"device":[0],"address":[0],"size":[0],"stack":[0],"birth":[-9]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decode(data)
		if err != nil {
			if _, ok := errors.AsType[*snapshot.FormatError](err); !ok {
				t.Fatalf("an error of no file: %v", err)
			}
			return
		}
		if data[0] == 0x1f || data[0] == 0x28 || data[0] == 0xef {
			return // compressed, or behind a mark that encoding/json does not know
		}
		wantBytes, wantCount := twin(data)
		for _, site := range s.Sites() {
			wantBytes[site.Device] -= int64(site.Bytes)
			wantCount[site.Device] -= site.Count
		}
		for device := range wantBytes {
			if wantBytes[device] != 0 || wantCount[device] != 0 {
				t.Fatalf("device %d differs by %d bytes and %d blocks", device, wantBytes[device], wantCount[device])
			}
		}
	})
}

func TestWhatATextMayMakeIsCharged(t *testing.T) {
	for name, piece := range map[string]string{"numbers": "0,", "frames": "[],", "devices": "{},"} {
		totalstest.Flooded(t, decode, totalstest.TooMuchMemory,
			totalstest.Flood{Name: name, Before: `{"memdiag_agent":1,"holders":[`, Piece: piece, Count: 1_400_000, After: `{}]}`, Packed: true})
	}
}
