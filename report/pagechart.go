package report

import (
	"fmt"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// chartView is one device's growth, for the script that draws it, and as a table for readers who cannot see that.
type chartView struct {
	About string
	Ahead string // the text of a button that shows a forecast far ahead; or ""
	Axis  string
	Heads []string
	Rows  []chartRow
}

type chartRow struct {
	X     string
	Cells []string
}

// chartData is the input of page.js: columns as long as X.
type chartData struct {
	Axis  string     `json:"axis"`
	X     []float64  `json:"x"`
	Bands []bandData `json:"bands"` // stacked, lowest first
	Lines []lineData `json:"lines"`
	Top   float64    `json:"top"`
	Warm  float64    `json:"warm"` // x at which warm-up ends
	// Moments of the axis: where epochs begin, and where the run was in another phase.
	Epochs []momentData `json:"epochs"`
	Aside  []momentData `json:"aside"`
	Ahead  *aheadData   `json:"ahead"` // null if memory does not run out
}

type momentData struct {
	X    float64 `json:"x"`
	Name string  `json:"name"`
}

// aheadData is where memory runs out.
type aheadData struct {
	Limit     float64 `json:"limit"`
	X         float64 `json:"x"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Reserved  float64 `json:"reserved"` // at the last x, like Allocated
	Allocated float64 `json:"allocated"`
	Label     string  `json:"label"`
	End       float64 `json:"end"`  // of the axis if it shows the forecast
	Near      bool    `json:"near"` // whether it is shown without a click
}

type bandData struct {
	Name   string    `json:"name"`
	Note   string    `json:"note"`
	Colour string    `json:"colour"`
	Leak   bool      `json:"leak"`
	Y      []float64 `json:"y"` // its own bytes
}

type lineData struct {
	Name  string     `json:"name"`
	Class string     `json:"class"`
	Y     []*float64 `json:"y"` // null where unknown
}

// pageMarks is how many marks of a chart a page holds, and tableMarks how many its table lists.
const pageMarks, tableMarks = 1000, 12

// chartViews draws each device in use, the first finding's device first. If other processes leak, it draws their leaks; and it draws
// the command's processes. Both come before the devices if the first sentence is about them.
func chartViews(r *diff.Result) (views []chartView, data []chartData) {
	data = []chartData{}
	if r.Series == nil {
		return nil, data
	}
	add := func(c *chart) {
		v, columns := c.view()
		views, data = append(views, v), append(data, columns)
	}
	others := func() {
		for _, child := range r.Children {
			if c, err := newChart(child.Result, PlotOptions{}, pageMarks); err == nil {
				add(c)
			}
		}
		if tree := newTreeChart(r, PlotOptions{}, pageMarks); tree != nil {
			add(tree)
		}
	}
	if aboutOthers(r) {
		others()
	}
	order := []string{""}
	for _, d := range r.Series.Devices {
		order = append(order, deviceName(d))
	}
	seen := make(map[string]struct{})
	for _, name := range order {
		at, err := chosenDevice(r, name)
		if err != nil || len(r.Series.Devices) == 0 {
			continue
		}
		d := r.Series.Devices[at]
		if _, ok := seen[deviceName(d)]; ok || unused(d.Meters) {
			continue
		}
		seen[deviceName(d)] = struct{}{}
		if c, err := newChart(r, PlotOptions{Device: deviceName(d)}, pageMarks); err == nil {
			add(c)
		}
	}
	if !aboutOthers(r) {
		others()
	}
	return views, data
}

func (c *chart) view() (v chartView, data chartData) {
	v = chartView{About: c.subtitle, Axis: c.axis}
	data = chartData{Axis: c.axis, X: c.x, Top: c.top, Warm: c.warm, Lines: []lineData{}}
	for i, b := range c.bands {
		name := strings.TrimSpace(b.name + " " + b.from)
		data.Bands = append(data.Bands, bandData{name, b.notes[0], cssColour(b.colour), b.strong, b.y})
		if b.colour == restColour {
			data.Bands[i].Colour = "" // the page's own colour, which suits light and dark mode
		}
		v.Heads = append(v.Heads, name)
	}
	line := func(name, class string, y []float64) {
		if y == nil {
			return
		}
		l := lineData{Name: name, Class: class, Y: make([]*float64, len(y))}
		for i := range y {
			if y[i] >= 0 {
				l.Y[i] = &y[i]
			}
		}
		data.Lines = append(data.Lines, l)
		v.Heads = append(v.Heads, name)
	}
	line("reserved", "reserved", c.reserved)
	line(c.outermost, "driver", c.driver)
	data.Epochs, data.Aside = moments(c.epochs), moments(c.aside)
	if at := c.runsOut; at != nil {
		data.Ahead = &aheadData{
			Limit: float64(at.limit), X: at.x, Low: at.low, High: at.high, Reserved: c.from[0], Allocated: c.from[1],
			Label: "runs out: " + at.text, End: c.end, Near: c.end > 0,
		}
		if !data.Ahead.Near {
			data.Ahead.End = max(at.high, at.x)
			v.Ahead = "Show where it runs out, at " + at.text
		}
	}
	if c.limit > 0 {
		limit := make([]float64, len(c.x))
		for i := range limit {
			limit[i] = c.limit
		}
		line("limit", "limit", limit)
	}
	for _, i := range evenly(len(c.x), tableMarks) {
		row := chartRow{X: wholeNumber(c.x[i])}
		for _, b := range c.bands {
			row.Cells = append(row.Cells, snapshot.FormatBytes(b.y[i]))
		}
		for _, l := range data.Lines {
			text := "?"
			if l.Y[i] != nil {
				text = snapshot.FormatBytes(*l.Y[i])
			}
			row.Cells = append(row.Cells, text)
		}
		v.Rows = append(v.Rows, row)
	}
	return v, data
}

func moments(list []moment) []momentData {
	out := make([]momentData, len(list))
	for i, m := range list {
		out[i] = momentData{m.x, m.name}
	}
	return out
}

// evenly lists at most most of the indices below n, evenly spaced, with the first and the last.
func evenly(n, most int) []int {
	if n <= most {
		most = n
	}
	out := make([]int, most)
	for i := range out {
		out[i] = i * (n - 1) / max(most-1, 1)
	}
	return out
}

func cssColour(c interface{ RGBA() (r, g, b, a uint32) }) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
