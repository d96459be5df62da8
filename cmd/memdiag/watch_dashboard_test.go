package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"image/color"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/memdiag/memdiag/snapshot"
)

// dashboardPanel is a panel of Grafana's, as far as it is looked at here.
type dashboardPanel struct {
	Title   string
	Type    string // timeseries, stat or table
	Targets []struct{ Expr, LegendFormat string }
	GridPos struct{ X, Y, W, H float64 }
	Config  struct {
		Defaults struct {
			Unit   string
			Custom struct{ Stacking struct{ Mode string } }
		}
	} `json:"fieldConfig"`
}

func dashboardPanels(t *testing.T) []dashboardPanel {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "monitor", "grafana", "dashboards", "memdiag.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct{ Panels []dashboardPanel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

// promSeries is one line of an answer of Prometheus'.
type promSeries struct {
	Metric map[string]string `json:"metric"`
	Values [][2]any          `json:"values"` // of a range: Unix seconds, and the value as text
	Value  [2]any            `json:"value"`  // of one moment
}

// number reads a value.
func number(at [2]any) (x, y float64) {
	x, _ = at[0].(float64)
	text, _ := at[1].(string)
	y, _ = strconv.ParseFloat(text, 64)
	return x, y
}

// ask evaluates a query of the dashboard: at each second of the time until now, or now if that is 0.
func ask(t *testing.T, prometheus, query string, since time.Duration) []promSeries {
	t.Helper()
	values := url.Values{"query": {strings.NewReplacer("$run", ".*", "$host", ".*").Replace(query)}}
	path := "/api/v1/query?"
	if since > 0 {
		now := time.Now().Unix()
		path = "/api/v1/query_range?"
		values.Set("start", fmt.Sprint(now-int64(since.Seconds())))
		values.Set("end", fmt.Sprint(now))
		values.Set("step", "1")
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+prometheus+path+values.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []promSeries `json:"result"`
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %s %v", query, answer.Error, err)
	}
	return answer.Data.Result
}

// panelsShow fails unless these panels have data before long, and no panel's query is refused.
func panelsShow(t *testing.T, prometheus string, titles ...string) {
	t.Helper()
	for _, p := range dashboardPanels(t) {
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second / 2) {
			found := 0
			for _, target := range p.Targets {
				found += len(ask(t, prometheus, target.Expr, 0))
			}
			if found > 0 || !slices.Contains(titles, p.Title) {
				break
			}
			if time.Now().After(end) {
				t.Errorf("the panel %q is empty", p.Title)
				break
			}
		}
	}
}

var picture = flag.String("picture", "", "draw the dashboard to this PNG, of a training that leaks")

// leakyTraining has loader workers, and keeps its batches.
const leakyTraining = `
import torch, torch.nn as nn
from torch.utils.data import DataLoader, Dataset
class Images(Dataset):
    def __len__(self): return 32 * 2400
    def __getitem__(self, i): return torch.rand(3, 32, 32)
if __name__ == "__main__":
    model = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
    model(torch.rand(1, 3, 32, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for n, batch in enumerate(DataLoader(Images(), batch_size=32, num_workers=2)):
        loss = model(batch).square().mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        if n > 200: kept.append(batch[:8])
`

// TestPictureOfTheDashboard draws docs/dashboard.png: go test ./cmd/memdiag -run Picture -picture ../../docs/dashboard.png.
func TestPictureOfTheDashboard(t *testing.T) {
	if *picture == "" {
		t.Skip("no -picture is asked for")
	}
	dir := t.TempDir()
	program, run, at := filepath.Join(dir, "train.py"), filepath.Join(dir, "my-run"), freeAddress(t)
	if err := os.WriteFile(program, []byte(leakyTraining), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, exec.CommandContext(t.Context(), "memdiag", "record", "-q", "-o", run, "--", torchPython(t), program))
	for _, err := os.Stat(filepath.Join(run, "run.json")); err != nil; _, err = os.Stat(filepath.Join(run, "run.json")) {
		time.Sleep(100 * time.Millisecond)
	}
	watcher := exec.CommandContext(t.Context(), "memdiag", "watch", run, "--listen", at, "--max-live", "1GiB", "--max-growth", "loader worker=64MiB")
	watcher.Dir = dir
	var said strings.Builder
	watcher.Stdout = &said
	start(t, watcher)
	prometheus := startMonitor(t, dir, at, "http://"+freeAddress(t))
	begun := time.Now()
	for time.Since(begun) < 8*time.Minute && len(ask(t, prometheus, "memdiag_run_ended == 1", 0)) == 0 {
		time.Sleep(time.Second)
	}
	canvas := vgimg.NewWith(vgimg.UseWH(vg.Length(1200), vg.Length(36*26)), vgimg.UseDPI(96))
	whole := draw.New(canvas)
	for _, p := range dashboardPanels(t) {
		width, height := whole.Max.X/24, vg.Length(26)
		g := p.GridPos
		part := draw.Crop(whole, vg.Length(g.X)*width+4, vg.Length(g.X+g.W)*width-whole.Max.X-4, whole.Max.Y-vg.Length(g.Y+g.H)*height+4, -vg.Length(g.Y)*height-4)
		part.SetColor(color.Gray{Y: 200})
		part.SetLineWidth(0.5)
		part.Stroke(part.Path())
		panelPicture(t, prometheus, &p, draw.Crop(part, 6, -8, 4, -4), time.Since(begun))
	}
	file, err := os.Create(*picture)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(file); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("watch says\n%s", said.String())
}

// colours tell lines apart, also for the colour-blind.
var colours = []color.Color{color.NRGBA{0, 114, 178, 255}, color.NRGBA{213, 94, 0, 255}, color.NRGBA{0, 158, 115, 255}, color.NRGBA{204, 121, 167, 255}, color.NRGBA{230, 159, 0, 255}, color.NRGBA{86, 180, 233, 255}}

func panelPicture(t *testing.T, prometheus string, panel *dashboardPanel, c draw.Canvas, since time.Duration) {
	t.Helper()
	p := plot.New()
	p.Title.Text = panel.Title
	for style, size := range map[*draw.TextStyle]font.Length{&p.Title.TextStyle: 11, &p.X.Tick.Label: 8, &p.Y.Tick.Label: 8, &p.Legend.TextStyle: 8} {
		style.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	}
	unit := panel.Config.Defaults.Unit
	if panel.Type != "timeseries" {
		p.HideAxes()
		p.Draw(c)
		style := draw.TextStyle{Color: color.Black, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: 9}, Handler: plot.DefaultTextHandler}
		if panel.Type == "stat" {
			style.Font.Size = 20
		}
		for i, line := range panelLines(t, prometheus, panel) {
			c.FillText(style, vg.Point{X: c.Min.X + 8, Y: c.Max.Y - 28 - vg.Length(i)*14 - style.Font.Size/2}, line)
		}
		return
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		return ticksOf(low, high, func(v float64) string { return time.Unix(int64(v), 0).UTC().Format("15:04:05") })
	}), plot.TickerFunc(func(low, high float64) []plot.Tick {
		return ticksOf(low, high, func(v float64) string { return inUnit(v, unit) })
	})
	p.Y.Min, p.Legend.Top, p.Legend.Left = 0, true, true
	n := 0
	for _, target := range panel.Targets {
		for _, s := range ask(t, prometheus, target.Expr, since) {
			var points plotter.XYs
			for _, at := range s.Values {
				x, y := number(at)
				points = append(points, plotter.XY{X: x, Y: y})
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				continue
			}
			line.Color, line.Width = colours[n%len(colours)], 1.2
			p.Add(line)
			p.Legend.Add(legendOf(target.LegendFormat, s.Metric), line)
			n++
		}
	}
	p.Y.Max *= 1.25 // room for the legend
	p.Draw(c)
}

func ticksOf(low, high float64, text func(float64) string) []plot.Tick {
	var out []plot.Tick
	for i := range 5 {
		v := low + (high-low)*float64(i)/4
		out = append(out, plot.Tick{Value: v, Label: text(v)})
	}
	return out
}

func inUnit(v float64, unit string) string {
	switch unit {
	case "bytes":
		return snapshot.FormatBytes(v)
	case "binBps":
		return snapshot.FormatBytes(v) + "/s"
	case "percentunit":
		return fmt.Sprintf("%.1f %%", 100*v)
	case "s":
		return time.Duration(v * float64(time.Second)).Round(time.Second).String()
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// legendOf fills a legend's labels in.
func legendOf(format string, labels map[string]string) string {
	for name, value := range labels {
		format = strings.ReplaceAll(format, "{{"+name+"}}", value)
	}
	for _, name := range []string{"rank", "device", "where", "role", "run"} {
		format = strings.ReplaceAll(format, "{{"+name+"}}", "")
	}
	return strings.TrimSpace(format)
}

// panelLines are a stat's figure, or a table's rows.
func panelLines(t *testing.T, prometheus string, panel *dashboardPanel) []string {
	t.Helper()
	rows := make(map[string][]string)
	for _, target := range panel.Targets {
		for _, s := range ask(t, prometheus, target.Expr, 0) {
			_, v := number(s.Value)
			if panel.Type == "stat" {
				return []string{inUnit(v, panel.Config.Defaults.Unit)}
			}
			key := cmp.Or(s.Metric["budget"], s.Metric["fingerprint"]) + "  " + s.Metric["where"] + "  " + s.Metric["device"]
			name := strings.TrimPrefix(s.Metric["__name__"], "memdiag_")
			text := strconv.FormatFloat(v, 'g', 3, 64)
			if strings.Contains(name, "bytes") {
				text = snapshot.FormatBytes(v)
			}
			rows[key] = append(rows[key], strings.NewReplacer("site_", "", "budget_", "", "_bytes", "", "_", " ").Replace(name)+" "+text)
		}
	}
	var lines []string
	for key, figures := range rows {
		lines = append(lines, key+"   "+strings.Join(figures, "   "))
	}
	slices.Sort(lines)
	if lines == nil {
		return []string{"none"}
	}
	return lines
}
