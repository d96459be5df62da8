package main

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrometheusTakesWhatIsPushed has Prometheus receive by remote write what watch knows of a run that has ended.
func TestPrometheusTakesWhatIsPushed(t *testing.T) {
	t.Parallel()
	if missing, err := lacks("lacks:prometheus"); err != nil {
		t.Fatal(err)
	} else if missing {
		t.Skip("no prometheus")
	}
	dir := t.TempDir()
	recordWorkload(t, filepath.Join(dir, "my-run"))
	config, address := filepath.Join(dir, "prometheus.yml"), freeAddress(t)
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, exec.CommandContext(t.Context(), "prometheus", "--config.file="+config, "--web.enable-remote-write-receiver",
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address))
	waitFor(t, "Prometheus is ready", func() bool {
		status, _ := getNow("http://" + address + "/-/ready")
		return status == 200
	})
	out, err := exec.CommandContext(t.Context(), "memdiag", "watch", filepath.Join(dir, "my-run"), "--push", "http://"+address).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitLeak || strings.Contains(string(out), "--push") {
		t.Fatalf("%v\n%s", err, out)
	}
	for query, want := range map[string]string{
		`count({__name__=~"memdiag_.*"}) > 20`:           `"value"`,
		`memdiag_site_leaks == 1`:                        `"run":"my-run"`,
		`memdiag_run_ended`:                              `"1"]`,
		`memdiag_allocated_bytes{device="cpu:0"} > 80e6`: `"value"`,
	} {
		if _, body := getNow("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query)); !strings.Contains(body, want) {
			t.Errorf("%s: %s", query, body)
		}
	}
}

// getNow asks a server that may not be there yet; status is 0 then.
func getNow(url string) (status int, body string) {
	answer, err := http.Get(url) //nolint:gosec,noctx // a server of the test's, which answers at once
	if err != nil {
		return 0, ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(answer.Body) // as much as came
	return answer.StatusCode, string(text)
}
