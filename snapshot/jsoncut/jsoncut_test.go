package jsoncut

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/memdiag/memdiag/snapshot/bounded"
)

func scan(t *testing.T, text string, most int) *Scanner {
	t.Helper()
	in, err := bounded.Open("f", strings.NewReader(text), int64(len(text)), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	return &Scanner{In: in, Max: most, What: "test"}
}

func TestValuesAreCutAsTheyAreWritten(t *testing.T) {
	values := []string{`1`, `-2.5e3`, `null`, `"a\"]},"`, `{"a": [1, "}"]}`, `[[], {}]`, `""`}
	s := scan(t, " [ "+strings.Join(values, " ,\n")+" ]", 100)
	if err := s.Take('['); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		more, err := s.More(i == 0, ']')
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			if i != len(values) {
				t.Errorf("%d values, want %d", i, len(values))
			}
			return
		}
		raw, err := s.Value(true)
		if err != nil || string(raw) != values[i] || !json.Valid(raw) {
			t.Fatalf("%q, %v, want %q", raw, err, values[i])
		}
	}
}

func TestWhatIsNoValueIsRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no value", `]`, `']' where a value should be`},
		{"a text without end", `"abc`, "the file ends in the middle"},
		{"a list without end", `[1,[2]`, "the file ends in the middle"},
		{"more than the most", `"` + strings.Repeat("a", 20) + `"`, "a value of more than 10 B"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if raw, err := scan(t, c.text, 10).Value(true); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v, want %q", raw, err, c.want)
			}
		})
	}
	if err := scan(t, "[", 10).Take('{'); err == nil || !strings.Contains(err.Error(), `'[' where '{' should be: no test`) {
		t.Error(err)
	}
}

func TestIntegersAreReadAsGoReadsThem(t *testing.T) {
	for _, text := range []string{"0", "7", "007", "999999999", "1000000000", "2147483648", "-1", "-0", "1.5", "1e3", "12x", "x12", "9223372036854775808", "-9223372036854775808"} {
		want, wantErr := strconv.ParseInt(text, 10, 64)
		var got int64
		if ok := ReadInt([]byte(text), &got, 64); ok != (wantErr == nil) || ok && got != want {
			t.Errorf("%s: %d, %t; want %d, %v", text, got, ok, want, wantErr)
		}
		want, wantErr = strconv.ParseInt(text, 10, 32)
		var small int32
		if ok := ReadInt([]byte(text), &small, 32); ok != (wantErr == nil) || ok && int64(small) != want {
			t.Errorf("%s in 32 bits: %d, %t; want %d, %v", text, small, ok, want, wantErr)
		}
	}
}

// flooded is a text that is compressed so well that 32 Mi steps are all that it may ask for.
func flooded(t *testing.T, text string) *Scanner {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte(text)) // a buffer takes all
	_ = w.Close()
	return scan(t, b.String(), 100)
}

func TestItemsAndKeysAreSteps(t *testing.T) {
	list := flooded(t, "["+strings.Repeat("0,", 11_500_000)+"0]")
	err := list.List(func() error {
		_, err := list.Value(false)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "steps") {
		t.Errorf("a list of 11,500,000 numbers: %v", err)
	}
	object := flooded(t, "{"+strings.Repeat(`"":0,`, 2_200_000)+`"":0}`)
	err = object.Object(func(string) error {
		_, err := object.Value(false)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "steps") {
		t.Errorf("an object of 2,200,000 keys: %v", err)
	}
}

func TestBytesOfValuesAndSpacesAreSteps(t *testing.T) {
	const length = 112 << 20 // which is unpacked in a fifth of the steps
	for name, text := range map[string]string{"a text": `"` + strings.Repeat("a", length) + `"`, "spaces": strings.Repeat(" ", length) + "1"} {
		if _, err := flooded(t, text).Value(false); err == nil || !strings.Contains(err.Error(), "steps") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
