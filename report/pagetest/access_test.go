package pagetest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// audit lists what hinders readers: text of too little contrast (WCAG's 4.5 to 1),
// what sticks out of the page, headings that skip a level, landmarks that are
// missing or double, tables and pictures without names, and what is too small to
// be hit.
const audit = `(() => {
	const out = [];
	const luminance = c => { const f = v => { v /= 255; return v <= .03928 ? v / 12.92 : Math.pow((v + .055) / 1.055, 2.4) }; return .2126 * f(c[0]) + .7152 * f(c[1]) + .0722 * f(c[2]) };
	const colour = s => { const m = s.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m };
	const ratio = (a, b) => { const x = luminance(a), y = luminance(b); return (Math.max(x, y) + .05) / (Math.min(x, y) + .05) };
	const paper = e => { for (; e; e = e.parentElement) { const c = colour(getComputedStyle(e).backgroundColor); if (c[3] > .99) return c } return [255, 255, 255] };
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	let looked = 0;
	while (texts.nextNode()) {
		const text = texts.currentNode, e = text.parentElement, range = document.createRange();
		range.selectNodeContents(text);
		if (!text.textContent.trim() || e.closest('svg, script, style') || !range.getBoundingClientRect().width) continue;
		looked++;
		const r = ratio(colour(getComputedStyle(e).color), paper(e));
		if (r < 4.5) out.push('contrast ' + r.toFixed(2) + ' of ' + text.textContent.trim().slice(0, 40));
	}
	if (looked < 50) out.push('only ' + looked + ' texts were looked at');
	document.querySelectorAll('.flame .box').forEach(g => {
		const text = g.querySelector('text');
		if (!text || !text.textContent) return;
		const r = ratio(colour(getComputedStyle(text).fill), colour(getComputedStyle(g.querySelector('rect')).fill));
		if (r < 4.5) out.push('contrast ' + r.toFixed(2) + ' in the flamegraph of ' + text.textContent);
	});
	document.querySelectorAll('body *').forEach(e => {
		const box = e.getBoundingClientRect();
		if (!e.closest('.scroll, svg, .uplot, pre, .skip') && box.width && box.right > innerWidth + 1) out.push('sticks out: ' + e.tagName + '.' + e.className);
	});
	const levels = [...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1]);
	levels.forEach((h, i) => { if (i && h > levels[i - 1] + 1) out.push('a heading skips a level') });
	['header', 'main', 'nav', 'footer'].forEach(x => { if (document.querySelectorAll(x).length !== 1) out.push('landmark ' + x) });
	document.querySelectorAll('th').forEach(th => { if (!th.textContent.trim()) out.push('a column without a name in ' + th.closest('section').id) });
	document.querySelectorAll('svg, [role=img]').forEach(e => { if (!e.getAttribute('aria-label') && !e.getAttribute('aria-hidden')) out.push('a picture without a name') });
	document.querySelectorAll('.scroll').forEach(e => { if (e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0) out.push('a table that keys do not scroll in ' + e.closest('section').id) });
	document.querySelectorAll('button, input, summary').forEach(e => { const h = e.getBoundingClientRect().height; if (h && h < 24) out.push('too small to be hit: ' + e.tagName) });
	const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
	ids.forEach((x, i) => { if (ids.indexOf(x) !== i) out.push('two elements are ' + x) });
	return [...new Set(out)].join('\n');
})()`

const openAll = "document.querySelectorAll('details').forEach(d => d.open = true)"

func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

func testAccess(t *testing.T, ctx context.Context, dir string, run func(...string)) {
	run("record", "--workload", "L11", "--steps", "60", "--every", "10", "--out", "metrics", "-q")
	run("report", "metrics", "-o", "access.html")
	run("report", "metrics/snapshot_60", "-o", "one.html")
	for _, name := range []string{"access.html", "one.html"} {
		for _, width := range []int64{360, 1280} {
			for _, dark := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s at %d, dark %v", name, width, dark), func(t *testing.T) {
					b := open(t, ctx, filepath.Join(dir, name), width, dark)
					// Rooms that become too narrow hear of it in the next frame.
					b.do(chromedp.Evaluate(openAll+"; new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))", nil, awaitPromise))
					b.want(audit, "")
				})
			}
		}
	}
	t.Run("the audit sees faults", func(t *testing.T) {
		b := open(t, ctx, filepath.Join(dir, "access.html"), 1280, false)
		b.do(chromedp.Evaluate("document.body.style.color = '#999'; document.querySelector('.facts').style.width = '2000px'; document.querySelector('th').textContent = ''", nil))
		for _, fault := range []string{"contrast 2.8", "sticks out: ", "a column without a name in findings"} {
			b.holds(audit, fault)
		}
	})
	t.Run("the tab key goes down the page, and where it stands is seen", func(t *testing.T) {
		b := open(t, ctx, filepath.Join(dir, "access.html"), 1280, false)
		b.do(chromedp.Evaluate(openAll, nil))
		want := b.text("Array.from(document.querySelectorAll('a[href], button, input, summary, [tabindex=\"0\"]')).filter(e => e.getClientRects().length).map(e => e.tagName + e.id).join(' ')")
		var got []string
		for range strings.Fields(want) {
			b.do(chromedp.KeyEvent(kb.Tab))
			got = append(got, b.text("document.activeElement.tagName + document.activeElement.id"))
			b.want("(s => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2 || document.activeElement.className === 'skip')(getComputedStyle(document.activeElement))", "true")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the tab key goes\n%s, the page\n%s", strings.Join(got, " "), want)
		}
	})
	t.Run("nothing glides for who asked for less motion", func(t *testing.T) {
		b := open(t, ctx, filepath.Join(dir, "access.html"), 1280, false)
		b.want("getComputedStyle(document.documentElement).scrollBehavior", "smooth")
		b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}))
		b.want("getComputedStyle(document.documentElement).scrollBehavior", "auto")
	})
}
