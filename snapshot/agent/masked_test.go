package agent

import (
	"strings"
	"testing"
)

func TestKeysThatAreMaskedStayApart(t *testing.T) {
	seen := make(map[string]bool)
	for _, end := range []string{"A", "B"} {
		for _, path := range []string{"by['hf_abcdefghijklmnopqrstuvwxyzABCDEFGH%s']", "by['token=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH%s']['x']", "by['hf_abcdefghijklmnopqrstuvwxyzABCDEFGH%s"} {
			got := masked(strings.Replace(path, "%s", end, 1))
			if seen[got] || strings.Contains(got, "abc") || !strings.Contains(got, "***") {
				t.Errorf("%s: %s", path, got)
			}
			seen[got] = true
		}
	}
}
