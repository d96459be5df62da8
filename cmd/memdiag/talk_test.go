package main

import (
	"bytes"
	"testing"
	"time"
)

// progressOf reports every 50 ms for 25 s and returns what was written, with the
// talker for more.
func progressOf(term terminal, quiet bool) (*talker, *bytes.Buffer) {
	var out bytes.Buffer
	clock := time.Unix(0, 0)
	t := &talker{w: &out, term: term, quiet: quiet, now: func() time.Time { return clock }, progressed: clock}
	for i := range 500 {
		clock = clock.Add(50 * time.Millisecond)
		t.progress("step %d", i+1)
	}
	return t, &out
}

func TestProgressInALogIsALineEveryTenSeconds(t *testing.T) {
	for _, term := range []terminal{{}, {tty: true, dumb: true, width: 80}} {
		_, out := progressOf(term, false)
		if want := "memdiag: step 200\nmemdiag: step 400\n"; out.String() != want {
			t.Errorf("%+v: %q, want %q", term, out, want)
		}
	}
}

func TestProgressOnATerminalIsDrawnInPlace(t *testing.T) {
	talk, out := progressOf(terminal{tty: true, width: 15}, false)
	if n := bytes.Count(out.Bytes(), []byte("\r\x1b[K")); n != 250 {
		t.Errorf("drawn %d times in 25 s, want 250", n)
	}
	if bytes.ContainsRune(out.Bytes(), '\n') {
		t.Errorf("progress scrolls: %q", out)
	}
	if want := []byte("\r\x1b[Kmemdiag: step "); !bytes.HasSuffix(out.Bytes(), want) {
		t.Errorf("the line is not cut to the terminal: %q", out.Bytes()[out.Len()-30:])
	}
	out.Reset()
	talk.say("done")
	talk.clear()
	if want := "\r\x1b[Kmemdiag: done\n"; out.String() != want {
		t.Errorf("after progress %q, want %q", out, want)
	}
}

func TestQuietSilencesTalk(t *testing.T) {
	talk, out := progressOf(terminal{}, true)
	talk.say("hello")
	talk.next("diff", "run")
	if out.Len() > 0 {
		t.Errorf("said %q", out)
	}
}

func TestNextCommandCanBePasted(t *testing.T) {
	for _, c := range []struct {
		name  string
		words []string
		want  string
	}{
		{"plain words stay plain", []string{"diff", "run-1/snapshot_0"}, "next: memdiag diff run-1/snapshot_0\n"},
		{"a space is quoted", []string{"show", "my run"}, "next: memdiag show 'my run'\n"},
		{"a quote is quoted", []string{"show", "it's"}, `next: memdiag show 'it'\''s'` + "\n"},
		{"an empty word stays a word", []string{"diff", ""}, "next: memdiag diff ''\n"},
		{"a path that looks like a flag is none", []string{"diff", "-q"}, "next: memdiag diff ./-q\n"},
		{"what a shell expands is quoted", []string{"diff", "$HOME;*"}, "next: memdiag diff '$HOME;*'\n"},
		{"what does not print is escaped", []string{"diff", "a\nb\xff'\\é"}, `next: memdiag diff $'a\x0ab\xff\'\\é'` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			talk := &talker{w: &out, now: time.Now, program: "memdiag"}
			talk.next(c.words[0], c.words[1:]...)
			if out.String() != c.want {
				t.Errorf("%q, want %q", out.String(), c.want)
			}
		})
	}
}
