package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
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

// TestHelpPointsToNoFileOfTheRepository: who installed memdiag has none of docs/.
func TestHelpPointsToNoFileOfTheRepository(t *testing.T) {
	bare := regexp.MustCompile(`(^|[^/])docs/\w`)
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		if found := bare.FindString(cmd.Long + cmd.Example + cmd.LocalFlags().FlagUsages()); found != "" {
			t.Errorf("%s: %q", cmd.CommandPath(), found)
		}
		for _, page := range regexp.MustCompile(regexp.QuoteMeta(docsAddress)+`(\S*)`).FindAllStringSubmatch(cmd.Long, -1) {
			if _, err := os.Stat(filepath.Join("..", "..", "docs", page[1])); err != nil {
				t.Errorf("%s: %v", cmd.CommandPath(), err)
			}
		}
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	look(newRootCommand(&environment{talk: &talker{}}))
}
