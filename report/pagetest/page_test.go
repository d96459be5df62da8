// Package pagetest looks at what memdiag writes for browsers in a browser:
// headless Chromium, which must be on the machine. It is a module of its own, so
// that none of what drives the browser is in the product.
package pagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a browser lives, and a command that writes for it takes, at most.
const patience = 8 * time.Minute

// browser returns a context in which tabs can be opened. Without Chromium it skips
// the test, in CI it fails.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("no Chromium on this machine; .ci/run installs it")
		}
		t.Skip("no Chromium on this machine")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute))
	ctx, stop := context.WithTimeout(context.Background(), patience)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// memdiag builds the command and returns a way to run it in a folder.
func memdiag(t *testing.T) (dir string, run func(args ...string)) {
	t.Helper()
	dir = t.TempDir()
	binary := filepath.Join(dir, "memdiag")
	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/memdiag")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir, func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, binary, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("memdiag %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// tab is one open page with all that went wrong in it.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	faults   []string
	requests []string
}

// open loads a file of the given width and watches it. Faults and requests other
// than for the file itself fail the test at its end.
func open(t *testing.T, parent context.Context, file string, width int64, dark bool) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(parent)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx}
	address := (&url.URL{Scheme: "file", Path: file}).String()
	chromedp.ListenTarget(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.faults = append(b.faults, "exception: "+e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			b.faults = append(b.faults, fmt.Sprintf("console: %s %v", e.Type, e.Args))
		case *log.EventEntryAdded:
			b.faults = append(b.faults, "log: "+e.Entry.Text)
		case *page.EventJavascriptDialogOpening:
			b.faults = append(b.faults, "dialog: "+e.Message)
			go func() { _ = chromedp.Run(ctx, page.HandleJavaScriptDialog(false)) }()
		case *network.EventRequestWillBeSent:
			if e.Request.URL != address {
				b.requests = append(b.requests, e.Request.URL)
			}
		}
	})
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.do(network.Enable(), log.Enable(), chromedp.EmulateViewport(width, 900),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.Navigate(address))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, fault := range b.faults {
			t.Errorf("the browser says: %s", fault)
		}
		for _, request := range b.requests {
			t.Errorf("the page asks for %s", request)
		}
	})
	return b
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// text is what an expression of JavaScript gives, as text.
func (b *tab) text(expression string) string {
	b.t.Helper()
	var value string
	b.do(chromedp.Evaluate("String("+expression+")", &value))
	return value
}

// want fails the test unless the expression gives the text.
func (b *tab) want(expression, text string) {
	b.t.Helper()
	if got := b.text(expression); got != text {
		b.t.Errorf("%s is %q, want %q", expression, got, text)
	}
}

// holds fails the test unless the expression gives a text with part in it.
func (b *tab) holds(expression, part string) {
	b.t.Helper()
	if got := b.text(expression); !strings.Contains(got, part) {
		b.t.Errorf("%s is %.300q, want one with %q", expression, got, part)
	}
}

// slash presses the key that leads to the search.
func (b *tab) slash() {
	b.t.Helper()
	b.do(chromedp.Evaluate("document.documentElement.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true, cancelable: true}))", nil))
	b.want("document.activeElement.type", "search")
}

func TestInABrowser(t *testing.T) {
	ctx := browser(t)
	dir, run := memdiag(t)
	t.Run("page", func(t *testing.T) { testPage(t, ctx, dir, run) })
	t.Run("flamegraph alone", func(t *testing.T) { testFlamegraphAlone(t, ctx, dir, run) })
	t.Run("hostile names", func(t *testing.T) { testHostileNames(t, ctx, dir, run) })
	t.Run("a search counts what is too small to draw", func(t *testing.T) { testSearchOfAll(t, ctx, dir, run) })
	t.Run("timeline", func(t *testing.T) { testTimeline(t, ctx, dir, run) })
	t.Run("fleet", func(t *testing.T) { testFleet(t, ctx, dir, run) })
	t.Run("access", func(t *testing.T) { testAccess(t, ctx, dir, run) })
	t.Run("the page rounds as the text does", func(t *testing.T) { testTies(t, ctx, dir, run) })
	t.Run("the tests see faults", func(t *testing.T) { testFaultsAreSeen(t, ctx) })
}

const site = "feature_pyramid.go:80"

func testPage(t *testing.T, ctx context.Context, dir string, run func(...string)) {
	run("record", "--workload", "L30", "--steps", "40", "--every", "10", "--limit", "1GiB", "--out", "run", "-q")
	run("report", "run", "-o", "report.html")
	file := filepath.Join(dir, "report.html")

	t.Run("it is small, and opens fast", func(t *testing.T) {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 1<<20 {
			t.Errorf("%d bytes, more than 1 MiB", info.Size())
		}
		b := open(t, ctx, file, 1200, false)
		var milliseconds float64
		b.do(chromedp.Evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd", &milliseconds))
		t.Logf("%d bytes, opened in %.0f ms", info.Size(), milliseconds)
		if milliseconds > 5000 { // a second on an idle machine; CI has two cores for all
			t.Errorf("opened in %.0f ms", milliseconds)
		}
	})
	t.Run("the verdict, the chart and the flamegraph name the leaking site", func(t *testing.T) {
		b := open(t, ctx, file, 1200, false)
		b.holds("document.querySelector('h1').textContent", site)
		b.want("document.querySelectorAll('.uplot canvas').length > 0", "true")
		b.holds("document.querySelector('.u-legend').textContent", site)
		b.holds("document.querySelector('.flame .leak text').textContent", "Pyramid")
		b.holds("document.title", "1 leak")
		// The chart is not one colour: something was drawn.
		b.want(`(() => { const c = document.querySelector('.uplot canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
			const seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i+1] << 8 | d[i+2]); return seen.size > 5 })()`, "true")
	})
	t.Run("a search marks what it finds, and Escape ends it", func(t *testing.T) {
		b := open(t, ctx, file, 1200, false)
		b.do(chromedp.SendKeys("#search", "pyramid.*forward"))
		b.want("document.querySelectorAll('.flame .hit').length", "1")
		b.holds("document.querySelector('#details').textContent", "1 call matches “pyramid.*forward”: 20.0 MiB, ")
		b.do(chromedp.KeyEvent(kb.Escape))
		b.want("document.querySelectorAll('.flame .hit').length", "0")
		b.do(chromedp.Evaluate("document.activeElement.blur()", nil))
		b.slash()
		b.do(chromedp.KeyEvent("("))
		b.holds("document.querySelector('#details').textContent", "match “(”")
	})
	t.Run("the flamegraph zooms by mouse and by keyboard", func(t *testing.T) {
		b := open(t, ctx, file, 1200, false)
		const narrow = "document.querySelectorAll('.flame .box.away').length > 0"
		b.do(chromedp.Evaluate("document.querySelector('.flame .leak').dispatchEvent(new MouseEvent('click', {bubbles: true}))", nil))
		b.want(narrow, "true")
		b.do(chromedp.Click("#reset"))
		b.want(narrow, "false")
		b.do(chromedp.Focus(".flame"))
		for range 5 {
			b.do(chromedp.KeyEvent(kb.ArrowDown))
		}
		b.holds("document.querySelector('#details').textContent", site)
		b.want("document.querySelector('.flame .at').classList.contains('leak')", "true")
		b.do(chromedp.KeyEvent(kb.Enter))
		b.want(narrow, "true")
		b.do(chromedp.KeyEvent(kb.ArrowUp))
		b.holds("document.querySelector('#details').textContent", "loss")
	})
	t.Run("a sandwich shows a function's callers and callees, and the address keeps it", func(t *testing.T) {
		b := open(t, ctx, file, 1200, false)
		const names = "[...document.querySelectorAll('.sandwich .box')].map(g => +g.querySelector('rect').getAttribute('y') + ' ' + g.querySelector('title').textContent.split('\\n')[0].split(' (')[0]).join()"
		b.do(chromedp.Evaluate("[...document.querySelectorAll('.flame .box')].find(g => g.textContent.includes('Pyramid).Forward')).dispatchEvent(new MouseEvent('click', {bubbles: true, shiftKey: true}))", nil))
		b.holds("document.querySelector('.sandwich .middle').textContent", "Pyramid).Forward")
		b.holds("document.querySelector('#details').textContent", "Forward (")
		b.holds("document.querySelector('#details').textContent", ": 20.0 MiB, ")
		drawn := b.text(names)
		if callers, callees, ok := strings.Cut(drawn, "Forward"); !ok || !strings.Contains(drawn, ".loss") || !strings.Contains(drawn, ".ReLU") {
			t.Errorf("%q above and %q below", callers, callees)
		}
		b.want("getComputedStyle(document.querySelector('.flame .boxes')).display", "none")
		b.holds("location.hash", "#function=")
		b.do(chromedp.Reload())
		b.until("document.querySelector('.sandwich')")
		b.want(names, drawn)
		b.do(chromedp.Evaluate("[...document.querySelectorAll('.sandwich .box')].find(g => g.textContent.includes('ReLU')).dispatchEvent(new MouseEvent('click', {bubbles: true}))", nil))
		b.holds("document.querySelector('.sandwich .middle').textContent", "ReLU")
		b.do(chromedp.KeyEvent(kb.Escape))
		b.want("document.querySelectorAll('.sandwich').length + location.hash", "0")
		b.do(chromedp.SendKeys("#search", "relu"), chromedp.Evaluate("document.querySelector('.flame .leak').dispatchEvent(new MouseEvent('click', {bubbles: true}))", nil))
		b.holds("location.hash", "&find=relu")
		b.do(chromedp.Reload())
		b.until("document.querySelectorAll('.flame .hit').length > 0 && document.querySelectorAll('.flame .box.away').length > 0")
		b.do(chromedp.Evaluate("location.hash = '#zoom=99999&function=-1&find=%3Cb%3E%28'", nil))
		b.until("document.querySelectorAll('.flame .box.away').length === 0")
		b.want("document.querySelectorAll('.sandwich').length + document.getElementById('search').value", "0<b>(")
		b.do(chromedp.Evaluate("location.hash = '#where'", nil))
		b.do(chromedp.Focus(".flame"), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent("s"))
		b.until("document.querySelector('.sandwich')")
	})
	t.Run("the chart is read and zoomed by keyboard", func(t *testing.T) {
		b := open(t, ctx, file, 1200, false)
		b.do(chromedp.Focus(".chart"), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowRight))
		b.holds("document.querySelector('.readout').textContent", "step 1: ")
		b.holds("document.querySelector('.readout').textContent", site+" 512 KiB")
		b.do(chromedp.KeyEvent("+"), chromedp.KeyEvent(kb.Escape))
	})
	t.Run("a far forecast is shown when asked for", func(t *testing.T) {
		b := open(t, ctx, file, 1200, false)
		const far = "document.querySelector('.u-axis') && Array.from(document.querySelectorAll('.ahead')).map(b => b.getAttribute('aria-pressed')).join()"
		const ink = `(() => { const c = document.querySelector('.uplot canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
			let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] === 0x9b && d[i+1] === 0x1c && d[i+2] === 0x1c && d[i+3] > 200) n++; return n > 50 })()`
		b.want(far, "false")
		b.want(ink, "false")
		b.do(chromedp.Click("button.ahead", chromedp.ByQuery))
		b.want(far, "true")
		b.want(ink, "true")
		b.do(chromedp.Click("button.ahead", chromedp.ByQuery))
		b.want(ink, "false")
	})
	t.Run("it fits a phone, and knows the dark", func(t *testing.T) {
		b := open(t, ctx, file, 390, true)
		b.want("document.documentElement.scrollWidth <= 390", "true")
		b.want("getComputedStyle(document.body).backgroundColor", "rgb(18, 22, 27)")
		b.want("document.querySelector('.uplot').getBoundingClientRect().width <= 390", "true")
		light := open(t, ctx, file, 1200, false)
		light.want("getComputedStyle(light = document.body).backgroundColor", "rgb(255, 255, 255)")
	})
	t.Run("on paper it is light, and the flamegraph as wide as the paper", func(t *testing.T) {
		b := open(t, ctx, file, 1200, true)
		b.do(emulation.SetEmulatedMedia().WithMedia("print").WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}),
			chromedp.Evaluate("document.getElementById('flamebox').style.width = '500px'", nil))
		b.want("getComputedStyle(document.body).backgroundColor", "rgb(255, 255, 255)")
		b.want("document.querySelector('.flame').getBoundingClientRect().width", "500")
	})
	t.Run("what a screen reader needs is there", func(t *testing.T) {
		b := open(t, ctx, file, 1200, false)
		b.want("document.documentElement.lang", "en")
		b.want("document.querySelectorAll('h1').length", "1")
		b.want("Array.from(document.querySelectorAll('section')).every(s => s.querySelector('h2'))", "true")
		b.want("Array.from(document.querySelectorAll('svg, .chart')).every(e => e.getAttribute('aria-label') || e.getAttribute('aria-hidden'))", "true")
		b.want("Array.from(document.querySelectorAll('input')).every(e => e.labels.length)", "true")
		b.want("document.querySelectorAll('figure table tbody tr').length > 4", "true")
		b.want("Array.from(document.querySelectorAll('nav a, .skip')).every(a => document.querySelector(a.getAttribute('href')))", "true")
	})
}

func testFlamegraphAlone(t *testing.T, ctx context.Context, dir string, run func(...string)) {
	run("flame", "run", "-o", "flame.svg")
	b := open(t, ctx, filepath.Join(dir, "flame.svg"), 1200, false)
	// The field covers no word of the heading, nor does what resets.
	b.want(`(() => { const box = e => e.getBoundingClientRect(), field = box(document.querySelector('input')), cover = e => {
		const r = box(e); return r.right > field.left && r.left < field.right && r.bottom > field.top && r.top < field.bottom };
		return [...document.querySelectorAll('.title, .sub, .box, .reset')].filter(cover).length + ' ' + [...document.querySelectorAll('.title, .sub')].filter(e => box(e).right > 1200).length })()`, "0 0")
	b.slash()
	b.do(chromedp.KeyEvent("pyramid"))
	b.want("document.querySelectorAll('.hit').length > 0", "true")
	b.holds("document.querySelector('.details').textContent", "match “pyramid”")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.want("document.querySelectorAll('.hit').length", "0")
}

// testSearchOfAll has a snapshot of 3,000 lines with a block of 1 KiB each, and one with one of
// 1 MiB: a picture has no room for all, and a search finds them.
func testSearchOfAll(t *testing.T, ctx context.Context, dir string, run func(...string)) {
	type list []any
	type object map[string]any
	var blocks list
	at := 0x7f0000000000
	add := func(size int, frames ...any) {
		blocks = append(blocks, object{"address": at, "size": size, "requested_size": size, "state": "active_allocated", "frames": frames})
		at += size
	}
	main := object{"name": "main", "filename": "train.py", "line": 1}
	add(1<<20, object{"name": "large", "filename": "train.py", "line": 2}, main)
	write := func(name string) {
		total := at - 0x7f0000000000
		text, err := json.Marshal(object{"device_traces": list{}, "segments": list{object{
			"device": 0, "address": 0x7f0000000000, "total_size": total, "allocated_size": total, "active_size": total,
			"requested_size": total, "stream": 0, "segment_type": "large", "segment_pool_id": list{0, 0}, "is_expandable": false, "frames": list{}, "blocks": blocks,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var deep list
	for i := range 40 {
		deep = append(deep, object{"name": fmt.Sprintf("deep_%d", 40-i), "filename": "deep.py", "line": 1})
	}
	add(512, append(deep, main)...)
	write("deep.json")
	run("flame", "deep.json", "-o", "deep.svg")
	b := open(t, ctx, filepath.Join(dir, "deep.svg"), 1200, false)
	// No strip is left for rows that are too narrow to be seen, until they are zoomed to.
	const tall = "+document.documentElement.getAttribute('height') > 600"
	b.want(tall, "false")
	b.do(chromedp.Evaluate("[...document.querySelectorAll('.box')].find(g => g.textContent.includes('deep_1 ')).dispatchEvent(new MouseEvent('click', {bubbles: true}))", nil))
	b.want(tall, "true")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.want(tall, "false")

	for i := range 3000 {
		add(1024, object{"name": fmt.Sprintf("small_%d", i), "filename": "train.py", "line": 10 + i}, main)
	}
	write("many.json")
	run("flame", "many.json", "-o", "many.svg")
	run("report", "many.json", "-o", "many.html")
	for _, file := range []string{"many.svg", "many.html"} {
		b = open(t, ctx, filepath.Join(dir, file), 1200, false)
		b.slash()
		b.do(chromedp.KeyEvent("small_"))
		b.holds("document.querySelector('.details').textContent", "3000 calls match “small_”: 2.93 MiB, 74.5 % of all; ")
		b.want("document.querySelectorAll('.fold.within').length", "1")
		b.do(chromedp.KeyEvent(kb.Escape))
		b.slash()
		b.do(chromedp.KeyEvent("train"))
		b.holds("document.querySelector('.details').textContent", "3002 calls match “train”: 3.93 MiB, 100.0 % of all; ")
	}
}

// attack is a name that breaks out of text, attributes, scripts and comments where
// it is not escaped.
const attack = `</title></script></style></svg>--><script>window.hostile=1</script><img src=x onerror=window.hostile=2>\"'><b id=hostile>{{.}}`

// hostileSnapshot is a snapshot as PyTorch writes it, with n blocks of one stack,
// each of so many bytes.
func hostileSnapshot(n, bytes int) any {
	type list []any
	type object map[string]any
	var blocks list
	for i := range 20 {
		state, frames := "inactive", list{}
		if i < n {
			state, frames = "active_allocated", list{object{"name": attack, "filename": attack + ".py", "line": 7}, object{"name": "<module>" + attack, "filename": "train.py", "line": 1}}
		}
		blocks = append(blocks, object{"address": 0x7f0000000000 + i*bytes, "size": bytes, "requested_size": bytes, "state": state, "frames": frames})
	}
	return object{"device_traces": list{}, "segments": list{object{
		"device": 0, "address": 0x7f0000000000, "total_size": 20 * bytes, "allocated_size": n * bytes, "active_size": n * bytes,
		"requested_size": n * bytes, "stream": 0, "segment_type": "large", "segment_pool_id": list{0, 0}, "is_expandable": false, "frames": list{}, "blocks": blocks,
	}}}
}

// hostileRun writes four snapshots into dir, the last with 14 blocks.
func hostileRun(t *testing.T, dir string, bytes int) (files []string) {
	t.Helper()
	for _, n := range []int{2, 6, 10, 14} {
		text, err := json.Marshal(hostileSnapshot(n, bytes))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("snapshot_%d.json", n)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	return files
}

// 14 blocks of 896 bytes are 12.25 KiB, which text rounds to the even digit.
func testTies(t *testing.T, ctx context.Context, dir string, run func(...string)) {
	run(append([]string{"report", "-o", "ties.html"}, hostileRun(t, dir, 896)...)...)
	b := open(t, ctx, filepath.Join(dir, "ties.html"), 1200, false)
	b.holds("document.querySelector('.figures').textContent", "12.2 KiB live")
	b.holds("document.querySelector('.u-legend').textContent", "12.2 KiB")
}

func testHostileNames(t *testing.T, ctx context.Context, dir string, run func(...string)) {
	files := hostileRun(t, dir, 1<<20)
	frames := []any{map[string]any{"name": attack, "filename": attack, "line": 7}}
	record, err := json.Marshal(map[string]any{"segments": []any{}, "device_traces": []any{[]any{
		map[string]any{"action": "alloc", "addr": 1 << 20, "size": 1 << 20, "time_us": 1_750_000_000_000_000, "frames": frames},
		map[string]any{"action": "oom", "addr": 0, "size": 1 << 30, "time_us": 1_750_000_000_000_001, "frames": frames},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hostile.json"), record, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, output := range []string{"report.html", "flame.svg", "timeline.html"} {
		t.Run(output, func(t *testing.T) {
			files := files
			if output == "timeline.html" {
				files = []string{"hostile.json"}
			}
			run(append([]string{strings.TrimSuffix(output, filepath.Ext(output)), "-o", output}, files...)...)
			text, err := os.ReadFile(filepath.Join(dir, output))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "window.hostile=1") {
				t.Error("the name is not in it: nothing is tested")
			}
			b := open(t, ctx, filepath.Join(dir, output), 1200, false)
			b.want("window.hostile", "undefined")
			b.want("document.querySelectorAll('#hostile, img').length", "0")
			b.do(chromedp.Evaluate("document.querySelectorAll('.flame .box').forEach(g => g.dispatchEvent(new MouseEvent('mouseenter')))", nil))
			b.slash()
			b.do(chromedp.KeyEvent("hostile"))
			b.want("document.querySelectorAll('.hit').length > 0", "true")
			b.do(chromedp.Evaluate("document.querySelector('.flame .box.hit').dispatchEvent(new MouseEvent('click', {bubbles: true, shiftKey: true}))", nil))
			b.holds("document.querySelector('.sandwich .middle title').textContent", "window.hostile=1")
			b.do(chromedp.Evaluate("document.querySelectorAll('.sandwich .box').forEach(g => g.dispatchEvent(new MouseEvent('mouseenter')))", nil))
			b.want("window.hostile", "undefined")
			b.want("document.querySelectorAll('#hostile, img').length", "0")
		})
	}
}

// testFaultsAreSeen keeps the tests above honest: a page that does what they forbid
// is caught.
func testFaultsAreSeen(t *testing.T, ctx context.Context) {
	file := filepath.Join(t.TempDir(), "bad.html")
	if err := os.WriteFile(file, []byte(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'">
<style>b {}</style><script>console.error("x"); throw new Error("y")</script>`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &tab{t: t}
	tabCtx, stop := chromedp.NewContext(ctx)
	defer stop()
	b.ctx = tabCtx
	chromedp.ListenTarget(tabCtx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch event.(type) {
		case *runtime.EventExceptionThrown, *runtime.EventConsoleAPICalled, *log.EventEntryAdded:
			b.faults = append(b.faults, fmt.Sprintf("%T", event))
		}
	})
	b.do(log.Enable(), chromedp.Navigate("file://"+file))
	deadline := time.Now().Add(10 * time.Second)
	for {
		b.mu.Lock()
		n := len(b.faults)
		b.mu.Unlock()
		if n >= 3 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(errors.New("an exception, a console error and a blocked style were not seen"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}
