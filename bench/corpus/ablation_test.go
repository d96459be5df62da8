package corpus

import (
	"bytes"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// TestWithoutEachPartTheJudgeJudges, and without doubling nothing finds L32.
func TestWithoutEachPartTheJudgeJudges(t *testing.T) {
	w, err := workload.Find("L32")
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{Seeds: 1, Views: Views()[:1], Without: Parts()}
	runs, err := Runs([]workload.Workload{w}, plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := Judge(t.Context(), runs, func(int64, int) {}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := AblationText(&b, plan, runs); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "\ndoubling (") || !strings.Contains(b.String(), "whole: found -1") {
		t.Errorf("got\n%s", &b)
	}
}

// TestACalibrationIsDrawn, and counts what it says.
func TestACalibrationIsDrawn(t *testing.T) {
	heavytest.Sequential(t, "TestWithoutEachPartTheJudgeJudges runs side by side")
	w, err := workload.Find("L30")
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{Seeds: 1, Views: Views()[:1]}
	runs, err := Runs([]workload.Workload{w}, plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := Judge(t.Context(), runs, func(int64, int) {}); err != nil {
		t.Fatal(err)
	}
	c := runs[0].calibration
	if c.Leaks.Made == 0 || c.Leaks.Kept != c.Leaks.Made || len(c.Errors) != 1 || c.Errors[0] > 0.1 {
		t.Errorf("got %+v", c)
	}
	var picture bytes.Buffer
	if err := Picture(&picture, "svg", runs); err != nil || !strings.Contains(picture.String(), "a strong leak is one") {
		t.Errorf("error %v, drawn %d bytes", err, picture.Len())
	}
	if Picture(&picture, "exe", runs) == nil {
		t.Error("no error of an unknown format")
	}
}
