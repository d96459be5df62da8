package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/memdiag/memdiag/snapshot"
)

// FlameOptions configure the flamegraph.
type FlameOptions struct {
	Title    string // "": the profile's title
	MaxBoxes int    // the most boxes that are drawn; the rest is folded. 0: 2000
}

// The scripts in the picture. The page uses sandwich.js and flame.js, too; flame_alone.js starts them in an SVG that is a file of its
// own.
var (
	//go:embed assets/sandwich.js
	sandwichScript string
	//go:embed assets/flame.js
	flameScript string
	//go:embed assets/flame_alone.js
	flameAlone string
	//go:embed assets/flame.css
	flameStyle string
)

// Geometry of the picture in pixels. The font is monospaced so that a label's
// width is known without measuring it.
const (
	flameWidth  = 1200
	flameMargin = 10
	flameFoot   = 10
	rowHeight   = 17
	// Heading: the search field is to the right of the title.
	titleLine, titleRunes       = 20, 92
	subtitleLine, subtitleRunes = 14, 175
	glyphWidth                  = 6.65 // of the 11 px font; a little more than 0.6 em
)

// maxBoxes is what a browser moves without delay.
const maxBoxes = 2000

// Flame draws p as a flamegraph: one self-contained SVG. It is a plain picture, and in a browser it also zooms on a click, searches,
// explains the box under the pointer, and can be used by keyboard.
//
// It grows downwards from the outermost call. A page is read from its top, and the stacks of training programs are deep: with the root
// at the bottom, the user's own calls would be below the visible part. The width of a box is the sum of all changes below it, growth
// and shrinkage alike, so that growth cannot hide shrinkage of equal size. Its colour shows the net change: red grew, blue (with a
// minus sign) shrank. Libraries are grey, and memory without a recorded stack is sand. The interpreter's own frames, which are in every
// stack, are left out.
func Flame(w io.Writer, p *Profile, o FlameOptions) error {
	f, left := newFlame(p, o.MaxBoxes)
	title := Printable(o.Title)
	if title == "" {
		title = p.Title
	}
	f.header(title, flameSubtitle(p, left, f.tree.unstacked))
	f.draw()
	f.buf.WriteString("<script><![CDATA[\n" + sandwichScript + flameScript + flameAlone + "]]></script>\n</svg>\n")
	_, err := w.Write(f.buf.Bytes())
	return err
}

// embeddedFlame is the picture without title, style and script, for a page that has them, and a text about it. svg is "" if there is
// nothing to draw.
func embeddedFlame(p *Profile, limit int) (svg, about string) {
	f, left := newFlame(p, limit)
	if f.total == 0 {
		return "", flameSubtitle(p, left, f.tree.unstacked)
	}
	f.top = 2
	height := f.height(2)
	fmt.Fprintf(&f.buf, `<svg class="flame" role="application" tabindex="0" data-margin="%d" data-top="%d" data-foot="2"%s width="%d" height="%d" viewBox="0 0 %d %d"><g class="boxes">`+"\n",
		flameMargin, f.top, f.per(), flameWidth, height, flameWidth, height)
	f.draw()
	f.buf.WriteString("</svg>\n")
	return f.buf.String(), flameSubtitle(p, left, f.tree.unstacked)
}

func flameSubtitle(p *Profile, left int, unstacked bool) string {
	var grew, shrank snapshot.Bytes
	for i := range p.Samples {
		if v := p.Samples[i].Value().Bytes; v > 0 {
			grew += v
		} else {
			shrank += v
		}
	}
	var text string
	switch {
	case grew == 0 && shrank == 0 && p.PerUnit != "":
		text = "no stack grows or shrinks after warm-up"
	case grew == 0 && shrank == 0 && p.Growth:
		text = "no stack grew or shrank"
	case grew == 0 && shrank == 0:
		text = "nothing is live"
	case p.PerUnit != "":
		per := func(b snapshot.Bytes) string {
			return plusSign(float64(b)) + snapshot.FormatBytes(float64(b)/rateScale) + "/" + p.PerUnit
		}
		text = fmt.Sprintf("gains %s, frees %s; width = growth + shrinkage; red grows, blue shrinks, dark red leaks, dark grey may be zero, light grey is library code", per(grew), per(shrank))
	case p.Growth:
		text = fmt.Sprintf("grew %s, shrank %s, net %s; width = growth + shrinkage; red grew, blue shrank, dark red leaks, grey is library code", signed(grew), shrank, signed(grew+shrank))
	default:
		text = grew.String() + " live; width = bytes; grey is library code"
	}
	if unstacked {
		text += ", sand has no recorded stack"
	}
	if left > 0 {
		text += fmt.Sprintf("; %s too small to draw", count(int64(left), "call"))
	}
	return text
}

type flame struct {
	buf    bytes.Buffer
	tree   *flameTree
	boxes  []*box
	growth bool
	unit   string // of a rate; "" of sizes
	bare   bool   // blocks are not counted
	total  int64
	limit  int     // of boxes
	top    int64   // of the first row
	scale  float64 // pixels a byte
}

// newFlame lays the boxes out, at most limit (0: maxBoxes). left is how many calls are left out.
func newFlame(p *Profile, limit int) (f *flame, left int) {
	if limit <= 0 {
		limit = maxBoxes
	}
	tree := newFlameTree(p)
	left = tree.prune(max(limit, 2))
	f = &flame{tree: tree, boxes: tree.layout(), growth: p.Growth, unit: p.PerUnit, bare: p.Uncounted, total: tree.root.weight, limit: limit}
	f.scale = float64(flameWidth-2*flameMargin) / float64(max(f.total, 1))
	tree.root.label = "all"
	return f, left
}

// height is the picture's height: down to the deepest row with a visible box, plus foot. A script makes room for deeper rows when they
// are zoomed to.
func (f *flame) height(foot int64) int64 {
	deepest := int64(0)
	for _, b := range f.boxes {
		if float64(b.weight)*f.scale >= 1 {
			deepest = max(deepest, b.depth)
		}
	}
	return f.top + (deepest+1)*rowHeight + foot
}

// per is the attribute for the script that gives the unit of a rate, and how many units a width is for.
func (f *flame) per() string {
	if f.unit == "" {
		return ""
	}
	return fmt.Sprintf(` data-per=%q data-scale="%d"`, f.unit, rateScale)
}

// header begins the picture, and leaves room for a heading of as many lines as it needs.
func (f *flame) header(title, subtitle string) {
	var heading strings.Builder
	y := int64(4)
	lines := func(class, text string, height int64, runes int) {
		for _, line := range foldedAt(text, runes) {
			y += height
			fmt.Fprintf(&heading, `<text x="%d" y="%d" class="%s">%s</text>`+"\n", flameMargin, y, class, escapeXML(line))
		}
	}
	lines("title", title, titleLine, titleRunes)
	y += 4
	lines("sub", subtitle, subtitleLine, subtitleRunes)
	f.top = y + 14
	height := f.height(flameFoot)
	fmt.Fprintf(&f.buf, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" class="flame alone" tabindex="0" data-margin="%d" data-top="%d" data-foot="%d"%s width="%d" height="%d" viewBox="0 0 %d %d">
<style>
%s</style>
<rect width="100%%" height="100%%" class="paper"/>
%s<text x="%d" y="24" text-anchor="end" class="reset away" tabindex="0">reset (Esc)</text>
<text x="%d" y="%d" class="details" aria-live="polite"></text>
<g class="boxes">
`, flameMargin, f.top, flameFoot, f.per(), flameWidth, height, flameWidth, height, flameStyle, heading.String(), flameWidth-flameMargin-200, flameMargin, height+8)
}

// foldedAt breaks text at spaces into lines of at most the given number of characters; a longer word is cut.
func foldedAt(text string, runes int) []string {
	var lines []string
	for word := range strings.SplitSeq(text, " ") {
		if n := utf8.RuneCountInString(word); n > runes {
			word = string([]rune(word)[:runes-1]) + "…"
		}
		if last := len(lines) - 1; last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= runes {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

// draw writes the boxes and ends their group.
func (f *flame) draw() {
	if f.total > 0 {
		for _, b := range f.boxes {
			f.box(b)
		}
	}
	f.buf.WriteString("</g>\n")
	f.hidden()
}

// hiddenShare is how many calls too small to draw are stored for the search, per box that may be drawn.
const hiddenShare = 5

// hiddenJSON are calls that are too small to draw. The search counts them, too.
type hiddenJSON struct {
	Names []string `json:"names"`
	// Boxes are triples: an index into Names, the parent, and the width. The parent is an index among the drawn boxes, or -1-i for
	// Boxes[i], which comes before.
	Boxes [][3]int64 `json:"boxes"`
	More  bool       `json:"more,omitempty"` // whether there are more that are not listed
}

// hidden writes the calls that are not drawn, for the search.
func (f *flame) hidden() {
	at := make(map[*box]int64, len(f.boxes))
	for i, b := range f.boxes {
		at[b] = int64(i)
	}
	names := make(map[string]int64)
	var out hiddenJSON
	for _, b := range f.tree.boxes { // parents first
		if b.drawn {
			continue
		}
		if len(out.Boxes) == hiddenShare*f.limit {
			out.More = true
			break
		}
		name, ok := names[b.name]
		if !ok {
			name = int64(len(out.Names))
			names[b.name] = name
			out.Names = append(out.Names, b.name)
		}
		parent := at[b.parent]
		at[b] = -1 - int64(len(out.Boxes))
		out.Boxes = append(out.Boxes, [3]int64{name, parent, b.weight})
	}
	if out.Boxes == nil {
		return
	}
	text, _ := json.Marshal(out) // strings and numbers
	fmt.Fprintf(&f.buf, "<metadata class=\"hidden\">%s</metadata>\n", escapeXML(string(text)))
}

func (f *flame) box(b *box) {
	x := flameMargin + float64(b.x)*f.scale
	width := float64(b.weight) * f.scale
	y := f.top + b.depth*rowHeight
	label, class, narrow := b.label, "box", b.label
	switch {
	case b.isFolding:
		class = "box fold"
	case b.guilty:
		// A narrow box shows the name instead; the colour and the tooltip say leak.
		label, class = "leak: "+label, "box leak"
	case f.growth && b.value < 0:
		label = "− " + label
		narrow = label
	}
	fmt.Fprintf(&f.buf, `<g class="%s" data-x="%d" data-w="%d" data-d="%d"`, class, b.x, b.weight, b.depth)
	if label != b.name {
		fmt.Fprintf(&f.buf, ` data-l="%s"`, escapeXML(label))
	}
	fmt.Fprintf(&f.buf, `><title>%s</title><rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s" rx="1"/>`,
		escapeXML(f.tooltip(b)), x, y, max(width-0.5, 0.1), rowHeight-1, f.colour(b))
	text := fitted(label, width)
	if text != label {
		text = fitted(narrow, width)
	}
	if text != "" {
		fmt.Fprintf(&f.buf, `<text x="%.2f" y="%d">%s</text>`, x+3, y+12, escapeXML(text))
	}
	f.buf.WriteString("</g>\n")
}

func (f *flame) tooltip(b *box) string {
	if f.unit != "" {
		return b.name + "\n" + f.rateTip(b)
	}
	bytes, blocks := snapshot.Bytes(b.value).String(), count(b.blocks, "block")
	if f.growth {
		bytes = signed(snapshot.Bytes(b.value))
		if b.blocks > 0 {
			blocks = "+" + blocks
		}
	}
	parts := []string{bytes}
	if e := exact(snapshot.Bytes(b.value)); e != "" {
		parts = append(parts, e)
	}
	if !f.bare {
		parts = append(parts, blocks)
	}
	parts = append(parts, f.share(b))
	if b.leaks {
		parts = append(parts, "a leak is in here")
	}
	return b.name + "\n" + strings.Join(parts, ", ")
}

func (f *flame) share(b *box) string {
	return fmt.Sprintf("%.1f %% of the width", 100*float64(b.weight)/float64(max(f.total, 1)))
}

// rateTip is the tooltip of a rate, without its name.
func (f *flame) rateTip(b *box) string {
	bytes, blocks := float64(b.value)/rateScale, float64(b.blocks)/rateScale
	parts := []string{plusSign(bytes) + snapshot.FormatBytes(bytes) + "/" + f.unit}
	if !f.bare {
		parts = append(parts, plusSign(blocks)+threeDigits(blocks)+" blocks/"+f.unit)
	}
	parts = append(parts, f.share(b))
	switch {
	case b.leaks:
		parts = append(parts, "a leak is in here")
	case b.sure == 0:
		parts = append(parts, "it may be zero")
	}
	return strings.Join(parts, ", ")
}

// colour gives neighbours different shades, by their names, so that they can be distinguished; only the hue has a meaning.
func (f *flame) colour(b *box) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, b.name)
	shade := float64(h.Sum32()%64) / 63
	switch {
	case b.parent == nil && !b.isFolding:
		return "#d9dee3"
	case b.guilty:
		return "#b42318"
	case b.unstacked:
		return "#e6d3a8"
	case b.sure == 0:
		v := int(166 + 16*shade)
		return fmt.Sprintf("#%02x%02x%02x", v, v+3, v+8)
	case b.library:
		v := int(216 + 16*shade)
		return fmt.Sprintf("#%02x%02x%02x", v, v+2, v+5)
	case !f.growth:
		return fmt.Sprintf("#%02x%02x%02x", 240, int(150+45*shade), int(70+30*shade))
	}
	// 1: all grew, -1: all shrank, near 0: both, of equal size.
	net := float64(b.value) / float64(b.weight)
	strength := 0.35 + 0.65*math.Abs(net)
	mix := func(full float64) int { return int(245 - (245-full)*strength + 8*(shade-0.5)) }
	if net >= 0 {
		return fmt.Sprintf("#%02x%02x%02x", mix(235), mix(118), mix(96))
	}
	return fmt.Sprintf("#%02x%02x%02x", mix(94), mix(156), mix(222))
}

// fitted is as much of label as fits into the width; "" if that is next to nothing.
func fitted(label string, width float64) string {
	room := int((width - 6) / glyphWidth)
	switch n := utf8.RuneCountInString(label); {
	case n <= room:
		return label
	case room < 3:
		return ""
	}
	return string([]rune(label)[:room-1]) + "…"
}

// escapeXML escapes text and attributes. s must have no control characters except the line break of a tooltip, which XML allows.
func escapeXML(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a bytes.Buffer does not fail
	return b.String()
}
