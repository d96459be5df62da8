package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTheTopicHasWhatThePageOfFormatsHas(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| written by |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile(`(?m)^\| ([\w.]+)`).FindAllStringSubmatch(table, -1)
	if len(rows) < 13 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(newFormatsTopic().Long, "\n  "+row[1]+" ") {
			t.Errorf("memdiag help formats does not tell %s", row[1])
		}
	}
}
