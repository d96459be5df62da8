// Package field_test holds the law of the field set: that its truth can be read.
package field_test

import (
	"os"
	"os/exec"
	"testing"
)

func TestTruthAndItsCheck(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("no python3 here, which reads the programs' truth:", err)
	}
	command := exec.Command(python, "field_test.py")
	command.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
