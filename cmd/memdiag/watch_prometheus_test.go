package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// alarm is what Alertmanager sends of one alert.
type alarm struct {
	Status      string            `json:"status"` // firing or resolved
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// TestPrometheusSeesALeak feeds a recorded leak to memdiag watch as if it were going on, and has Prometheus and Alertmanager
// look at it by the rules of examples/monitor: the alert fires, and is resolved once the mended program runs in its place.
func TestPrometheusSeesALeak(t *testing.T) {
	heavytest.Skip(t, "Prometheus and Alertmanager look at a run")
	if heavytest.Race {
		t.Skip("the workloads train ten times slower under the race detector, and TestMetricsAreReadWhileALookIsUnderWay races for it")
	}
	for _, name := range []string{"prometheus", "prometheus-alertmanager"} {
		if missing, err := lacks("lacks:" + name); err != nil {
			t.Fatal(err)
		} else if missing {
			t.Skipf("no %s", name)
		}
	}
	dir := t.TempDir()
	recordWorkload(t, filepath.Join(dir, "leaky"))
	recordWorkload(t, filepath.Join(dir, "mended"), "--fixed")

	alarms := make(chan alarm, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var sent struct {
			Alerts []alarm `json:"alerts"`
		}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		for _, a := range sent.Alerts {
			alarms <- a
		}
	}))
	defer hook.Close()
	watched := watchServed(t, filepath.Join(dir, "leaky"), filepath.Join(dir, "first", "my-run"), "127.0.0.1:0")
	prometheus := startMonitor(t, dir, watched.address, hook.URL)

	got := await(t, alarms, "firing")
	if got.Labels["run"] != "my-run" || !strings.HasPrefix(got.Labels["where"], "engine/workload/feature_pyramid.go:") || got.Labels["severity"] != "warning" {
		t.Errorf("labels: %v", got.Labels)
	}
	if want := "leak in my-run at engine/workload/feature_pyramid.go:"; !strings.HasPrefix(got.Annotations["summary"], want) {
		t.Errorf("summary: %s", got.Annotations["summary"])
	}
	panelsShow(t, prometheus, "Leaks", "Not yet decided", "Leaking", "Memory of devices", "Live memory of the largest sites", "Largest call sites", "Steps a second")
	watched.stop()
	watchServed(t, filepath.Join(dir, "mended"), filepath.Join(dir, "second", "my-run"), watched.address)
	await(t, alarms, "resolved")
}

// await waits for MemdiagLeak to have a state.
func await(t *testing.T, alarms <-chan alarm, status string) alarm {
	t.Helper()
	for end := time.After(6 * time.Minute); ; { // seconds, where nothing else runs
		select {
		case a := <-alarms:
			t.Logf("%s %s", a.Status, a.Labels["alertname"])
			if a.Labels["alertname"] == "MemdiagLeak" && a.Status == status {
				return a
			}
		case <-end:
			t.Fatalf("no alert is %s", status)
		}
	}
}

func recordWorkload(t *testing.T, dir string, more ...string) {
	t.Helper()
	args := append([]string{"record", "-q", "--workload", "L30", "--steps", "160", "--every", "4", "-o", dir}, more...)
	if out, err := exec.CommandContext(t.Context(), "memdiag", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// served is a memdiag watch that serves metrics.
type served struct {
	address string
	stop    func()
}

// watchServed watches a copy of a run that gets one snapshot after the other and does not end.
func watchServed(t *testing.T, from, to, address string) served {
	t.Helper()
	info, err := os.ReadFile(filepath.Join(from, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(info, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "finished")
	delete(fields, "exit_code")
	if info, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "run.json"), info, 0o600); err != nil {
		t.Fatal(err)
	}
	feed := func(step int) bool {
		name := fmt.Sprintf("snapshot_%d.memdiag", step)
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return false
		}
		hidden := filepath.Join(to, "."+name)
		return os.WriteFile(hidden, text, 0o600) == nil && os.Rename(hidden, filepath.Join(to, name)) == nil
	}
	if !feed(0) {
		t.Fatal("there is no snapshot of step 0")
	}
	watcher := exec.CommandContext(t.Context(), "memdiag", "watch", to, "--interval", "50ms", "--listen", address)
	said, err := watcher.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	watcher.Stdout = &told
	start(t, watcher)
	lines := bufio.NewScanner(said)
	at := regexp.MustCompile(`http://(\S+)/metrics`)
	for lines.Scan() {
		if m := at.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	done, quit := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for step := 4; feed(step); step += 4 {
			select {
			case <-quit:
				return
			case <-time.After(150 * time.Millisecond):
			}
		}
	}()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		close(quit)
		<-done
		_ = watcher.Process.Signal(os.Interrupt)
		_ = watcher.Wait()
		t.Logf("watch says\n%s", told.String())
	}
	t.Cleanup(stop)
	return served{address, stop}
}

// start starts a server of the test's, which ends with it.
func start(t *testing.T, server *exec.Cmd) {
	t.Helper()
	server.WaitDelay = 10 * time.Second
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
}

// startMonitor starts Prometheus and Alertmanager with the configuration of examples/monitor, but faster and with other addresses.
func startMonitor(t *testing.T, dir, watched, hook string) (prometheus string) {
	t.Helper()
	alertmanager, prometheus := freeAddress(t), freeAddress(t)
	rules, err := filepath.Abs("../../examples/monitor/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	configure := func(name string, changes ...string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", "monitor", name))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(changes); i += 2 {
			if !strings.Contains(string(text), changes[i]) {
				t.Fatalf("%s lacks %q", name, changes[i])
			}
			text = []byte(strings.ReplaceAll(string(text), changes[i], changes[i+1]))
		}
		to := filepath.Join(dir, name)
		if err := os.WriteFile(to, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return to
	}
	run := func(name string, args ...string) {
		log, err := os.Create(filepath.Join(dir, name+".log")) // it says a lot
		if err != nil {
			t.Fatal(err)
		}
		server := exec.CommandContext(t.Context(), name, args...)
		server.Stdout, server.Stderr = log, log
		start(t, server)
		t.Cleanup(func() {
			_ = log.Close()
			if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
				t.Logf("%s\n%s", name, text)
			}
		})
	}
	alarmsTo := "    webhook_configs:\n      - url: " + hook
	run("prometheus-alertmanager", "--config.file="+configure("alertmanager.yml", "group_wait: 10s", "group_wait: 0s", "group_interval: 1m", "group_interval: 1s",
		"    # webhook_configs:\n    #   - url: https://example.org/hook", alarmsTo),
		"--storage.path="+filepath.Join(dir, "alertmanager"), "--web.listen-address="+alertmanager, "--cluster.listen-address=")
	run("prometheus", "--config.file="+configure("prometheus.yml", "_interval: 15s", "_interval: 1s", "rules.yml", rules, "alertmanager:9093", alertmanager, "watch:9760", watched),
		"--storage.tsdb.path="+filepath.Join(dir, "prometheus"), "--web.listen-address="+prometheus)
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		answer, err := http.Get("http://" + prometheus + "/-/ready") //nolint:noctx // a refusal comes at once
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return prometheus
			}
		}
		if time.Now().After(end) {
			t.Fatalf("Prometheus is not ready: %v", err)
		}
	}
}

// freeAddress is one that nobody listens at just now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
