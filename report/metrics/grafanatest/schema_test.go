// Package grafanatest checks the dashboard of examples/monitor with Grafana's own types. It has a module of its own, so that nothing
// of them is in the product.
package grafanatest

import (
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const file = "../../../examples/monitor/grafana/dashboards/memdiag.json"

func TestGrafanasSchemaTakesTheDashboard(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard.Dashboard
	if wrong := faults(&d, text); wrong != "" {
		t.Error(wrong)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	if len(d.Panels) < 5 {
		t.Errorf("%d panels: nothing was checked", len(d.Panels))
	}
}

func TestGrafanasSchemaRefusesAMistake(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{`"refresh"`: `"refreshs"`, `"legendFormat"`: `"legend"`, `"gridPos"`: `"gridpos"`} {
		if !strings.Contains(string(text), from) {
			t.Fatalf("the dashboard lacks %s", from)
		}
		var d dashboard.Dashboard
		if wrong := faults(&d, []byte(strings.Replace(string(text), from, to, 1))); !strings.Contains(wrong, strings.Trim(to, `"`)) {
			t.Errorf("of %s in place of %s it says %q", to, from, wrong)
		}
	}
}

// faults are what is wrong with a dashboard; "" for nothing, of which the types may also return an error without a text.
func faults(d *dashboard.Dashboard, text []byte) string {
	if err := d.UnmarshalJSONStrict(text); err != nil {
		return err.Error()
	}
	return ""
}
