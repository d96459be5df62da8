package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

const monitor = "../../examples/monitor"

// everything is a look that has each metric.
func everything(t *testing.T) Look {
	t.Helper()
	l := looked(t)
	code := 0
	l.Run.Info.ExitCode, l.Run.Info.Finished = &code, &noon
	l.Run.Tree.Host[2].Group.Limit = 20 << 30
	l.Run.Snapshots[2].Devices[0].Retries = 2
	l.Result.Reserves = []diff.Reserve{{
		Meter: cause.Host, Device: snapshot.Device{Kind: snapshot.Process}, Growth: 80 << 20,
		Rate: diff.Rate{Unit: "second", Bytes: trend.Slope{Value: 8192, N: 20}}, Processes: &diff.Processes{Role: "loader worker 3", PID: 7},
	}}
	return l
}

// expressions are the queries of the dashboard.
func expressions(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitor, "grafana", "dashboards", "memdiag.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				if text, ok := value.(string); ok && key == "expr" {
					out = append(out, strings.NewReplacer("$run", ".*", "$host", ".*").Replace(text))
				}
				walk(value)
			}
		case []any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(dashboard)
	return out
}

func TestExamplesAskForMetricsThatThereAre(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join(monitor, "rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	queries := expressions(t)
	if len(queries) < 20 {
		t.Fatalf("%d queries", len(queries))
	}
	known := string(text(t, everything(t))) + string(rules)
	for _, name := range regexp.MustCompile(`memdiag[_:][a-z_:]+`).FindAllString(strings.Join(queries, "\n")+string(rules), -1) {
		if strings.HasPrefix(name, "memdiag_") && !strings.Contains(known, "# TYPE "+name+" ") || strings.HasPrefix(name, "memdiag:") && !strings.Contains(known, "record: "+name+"\n") {
			t.Errorf("there is no %s", name)
		}
	}
}

// tool runs a program of Prometheus', which CI has.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	ctx := t.Context()
	command := exec.CommandContext(ctx, path, args...)
	command.WaitDelay = time.Second
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) {
			t.Fatal(err)
		}
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said.Bytes())
	}
}

func TestPrometheusTakesTheExamples(t *testing.T) {
	t.Run("rules do what their tests say", func(t *testing.T) { tool(t, "promtool", "test", "rules", filepath.Join(monitor, "rules_test.yml")) })
	t.Run("the configuration", func(t *testing.T) { tool(t, "promtool", "check", "config", filepath.Join(monitor, "prometheus.yml")) })
	t.Run("the configuration of alarms", func(t *testing.T) { tool(t, "amtool", "check-config", filepath.Join(monitor, "alertmanager.yml")) })
	t.Run("queries of the dashboard", func(t *testing.T) {
		type rule struct {
			Record string `yaml:"record"`
			Expr   string `yaml:"expr"`
		}
		var rules []rule
		for i, q := range expressions(t) {
			rules = append(rules, rule{fmt.Sprintf("query:%d", i), q})
		}
		text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "queries.yml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		tool(t, "promtool", "check", "rules", file)
	})
	t.Run("the page", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "page.prom")
		if err := os.WriteFile(file, text(t, everything(t)), 0o600); err != nil {
			t.Fatal(err)
		}
		tool(t, "sh", "-c", "promtool check metrics <"+file)
	})
}
