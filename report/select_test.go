package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

func TestAProfileIsSelected(t *testing.T) {
	tree := func(o Selection) string {
		p := GrowthProfile(pyramidResult(t))
		if !p.Select(o) {
			return "nothing"
		}
		return string(rendered(t, func(b *bytes.Buffer) error { return Tree(b, p, TextOptions{}) }))
	}
	whole := tree(Selection{})
	golden(t, "tree.txt", []byte(whole))
	focused := tree(Selection{Focus: regexp.MustCompile("adam.go|optim"), Hide: regexp.MustCompile("RunPyramid")})
	if !strings.Contains(whole, "RunPyramid (") || strings.Contains(focused, "RunPyramid (") || strings.Contains(focused, "Pyramid).Forward") || !strings.Contains(focused, "optim") {
		t.Errorf("focused:\n%s", focused)
	}
	first := func(text string) string { return strings.Split(text, "\n")[3] }
	if inverted := tree(Selection{Invert: true}); first(inverted) == first(whole) || !strings.Contains(inverted, "from the allocating call outwards") {
		t.Errorf("inverted:\n%s", inverted)
	}
	conv := regexp.MustCompile("Conv2D")
	if text := tree(Selection{From: conv}); strings.Contains(text, "Forward") || !strings.Contains(text, "Alloc") {
		t.Errorf("what it calls:\n%s", text)
	}
	if text := tree(Selection{From: conv, Invert: true}); !strings.Contains(text, "Forward") || strings.Contains(text, "Alloc") {
		t.Errorf("what calls it:\n%s", text)
	}
	leaks := func(text string) int { return strings.Count(text, "<- leaks") }
	line := regexp.MustCompile("Pyramid..Forward")
	if leaks(whole) != 1 || leaks(tree(Selection{Hide: line})) != 0 || leaks(tree(Selection{From: regexp.MustCompile("Loop..Step"), Invert: true})) != 0 || leaks(tree(Selection{From: line})) != 1 {
		t.Error("another line is said to leak, or none is")
	}
	rates := RateProfile(pyramidResult(t))
	if text := string(rendered(t, func(b *bytes.Buffer) error { return Tree(b, rates, TextOptions{}) })); !strings.Contains(text, "+512 KiB/step ") {
		t.Errorf("rates:\n%s", text)
	}
	if text := tree(Selection{Focus: regexp.MustCompile("no such call")}); text != "nothing" {
		t.Errorf("%s", text)
	}
	if text := tree(Selection{Hide: regexp.MustCompile(".")}); !strings.Contains(text, "(all calls are hidden)") {
		t.Errorf("%s", text)
	}
}
