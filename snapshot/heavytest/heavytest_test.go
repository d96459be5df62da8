package heavytest_test

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot/heavytest"
)

func TestHeavyTestsRunWhereTheyAreAskedFor(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "1": true} {
		t.Setenv(heavytest.Variable, value)
		ran := false
		t.Run("heavy", func(t *testing.T) {
			heavytest.Skip(t, "a test of the switch")
			ran = true
		})
		if ran != want {
			t.Errorf("%s=%q: ran %v", heavytest.Variable, value, ran)
		}
		if got := heavytest.Of(t, 20, 4); (got == 20) != want {
			t.Errorf("%s=%q: %d", heavytest.Variable, value, got)
		}
	}
}
