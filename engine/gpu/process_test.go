//go:build linux && (amd64 || arm64) && !static

package gpu

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// misuse is the variable that makes TestMisuse do what it is named for.
const misuse = "MEMDIAG_TEST_MISUSE"

// fresh is the variable that tells a test that it has a process of its own.
const fresh = "MEMDIAG_TEST_FRESH"

// child is this test binary, told to run some of its tests.
func child(tests string, env ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.v", "-test.timeout=4m", "-test.run="+tests)
	c.Env = append(os.Environ(), env...)
	return c
}

// TestTheValidationLayersAreSilent runs what the other tests run under Khronos' layers,
// which watch arguments, lifetimes and barriers.
func TestTheValidationLayersAreSilent(t *testing.T) {
	open(t)
	layers := []string{"VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation", "VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT"}
	complaint := regexp.MustCompile(`(?m)^.*(Validation (Error|Warning)|VUID|SYNC-HAZARD).*$`)
	for name, wrong := range map[string]string{"a wrong size": "size", "a barrier that is missing": "barrier"} {
		out, err := child("^TestMisuse$", append(layers, misuse+"="+wrong)...).CombinedOutput()
		if complaint.Match(out) {
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("the layers do not see %s: %v\n%s", name, err, out)
		}
		t.Skip("there are no validation layers here (Debian: vulkan-validationlayers)")
	}
	out, err := child("^(TestKernels|TestStaging.*|TestABlock.*|TestViews.*|TestWhatIsTooLarge.*|TestAProductOf.*|TestASegment.*)$", layers...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestKernels") {
		t.Fatalf("%v\n%s", err, out)
	}
	if said := complaint.FindAllString(string(out), 10); said != nil {
		t.Errorf("the layers say:\n%s", strings.Join(said, "\n"))
	}
}

// TestMisuse breaks Vulkan's rules, in a child of TestTheValidationLayersAreSilent.
func TestMisuse(t *testing.T) {
	d := open(t)
	v := tensor(t, d, 64)
	at := bytesOf(v)
	switch os.Getenv(misuse) {
	case "size":
		at.extent = 6 // not a multiple of 4
		d.queue.fill(at, 0)
	case "barrier":
		defer refuse(&d.cmdPipelineBarrier, success)()
		d.queue.fill(at, 0)
		d.queue.fill(at, 1)
	default:
		t.Skip("this is for a child of another test")
	}
	d.queue.finish(d.queue.queued())
}

// TestNothingIsLoadedBeforeItIsAskedFor looks at a fresh process.
func TestNothingIsLoadedBeforeItIsAskedFor(t *testing.T) {
	if os.Getenv(fresh) == "" {
		if out, err := child("^TestNothingIsLoaded.*$", fresh+"=1").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	loaded := func() bool {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(maps, []byte("libvulkan"))
	}
	if loaded() {
		t.Error("Vulkan was loaded with the package")
	}
	open(t)
	if !loaded() {
		t.Error("a device is open, and Vulkan not loaded: the test sees nothing")
	}
}

// TestTwoProcessesShareADevice trains in two at once, and here.
func TestTwoProcessesShareADevice(t *testing.T) {
	open(t)
	var children []*exec.Cmd
	for range 2 {
		c := child("^TestModelsLearn.*$")
		c.Stdout, c.Stderr = os.Stderr, os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, c)
	}
	TestModelsLearnAsOnTheProcessor(t)
	for _, c := range children {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
}
