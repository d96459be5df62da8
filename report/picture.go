package report

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// PlotFormat is a picture's file format.
type PlotFormat string

// The formats of Plot and Sheet.
const (
	PNG PlotFormat = "png"
	SVG PlotFormat = "svg"
	PDF PlotFormat = "pdf" // in one font; letters outside Windows-1252 become dots
)

// known returns an error for an unknown format.
func (f PlotFormat) known() error {
	switch f {
	case PNG, SVG, PDF:
		return nil
	}
	return fmt.Errorf("plot format %q is unknown; use png, svg or pdf", f)
}

// dpi is the resolution of a PNG: two pixels per point, sharp on current screens.
const dpi = 144

// picture writes what paint draws on a page of this size, in points.
func picture(w io.Writer, format PlotFormat, width, height vg.Length, paint func(draw.Canvas)) error {
	if err := format.known(); err != nil {
		return err
	}
	switch format {
	case PNG:
		canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
		paint(draw.New(canvas))
		_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
		return err
	case PDF:
		canvas := pdfCanvas{vgpdf.New(width, height)}
		paint(draw.New(canvas))
		text, err := written(canvas)
		if err != nil {
			return err
		}
		_, err = w.Write(pdfDate.ReplaceAll(text, []byte("Date (D:20000101000000")))
		return err
	}
	canvas := &svgCanvas{Canvas: vgsvg.New(width, height)}
	paint(draw.New(canvas))
	text, err := written(canvas)
	if err != nil {
		return err
	}
	// Few machines have the Liberation fonts; Arial has the same widths.
	text = bytes.ReplaceAll(text, []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
	_, err = w.Write(canvas.widths(text))
	return err
}

// svgCanvas records the width of each text.
type svgCanvas struct {
	*vgsvg.Canvas
	wide []vg.Length
}

// FillString implements vg.Canvas.
func (c *svgCanvas) FillString(face font.Face, at vg.Point, text string) {
	c.wide = append(c.wide, face.Width(text))
	c.Canvas.FillString(face, at, text)
}

// widths gives each text its width. Otherwise, if the fonts are missing, a wider one would run into the next text or out of the
// picture.
func (c *svgCanvas) widths(text []byte) []byte {
	begin := []byte("<text ")
	parts := bytes.Split(text, begin)
	out := parts[0]
	for i, part := range parts[1:] {
		out = append(out, begin...)
		out = fmt.Appendf(out, `textLength="%.1f" lengthAdjust="spacingAndGlyphs" `, c.wide[i].Points())
		out = append(out, part...)
	}
	return out
}

// pdfCanvas works around limits of vgpdf.
type pdfCanvas struct{ *vgpdf.Canvas }

// FillString writes all text in one font, since vgpdf stores every font of a document under one name. It encodes text as Windows-1252,
// since vgpdf passes UTF-8 to a font of that encoding.
func (c pdfCanvas) FillString(face font.Face, at vg.Point, text string) {
	if face.Font.Weight != xfont.WeightNormal {
		face.Font.Weight = xfont.WeightNormal
		face = font.DefaultCache.Lookup(face.Font, face.Font.Size)
	}
	c.Canvas.FillString(face, at, windows1252(text))
}

// SetColor passes on a colour that is not multiplied with its alpha: PDF needs that, and vgpdf expects it.
func (c pdfCanvas) SetColor(clr color.Color) {
	if clr == nil {
		clr = color.Black
	}
	c.Canvas.SetColor(straight(color.NRGBAModel.Convert(clr).(color.NRGBA)))
}

// straight is a colour whose RGBA is not multiplied with its alpha.
type straight color.NRGBA

// RGBA implements color.Color, except for the multiplication.
func (s straight) RGBA() (r, g, b, a uint32) {
	return uint32(s.R) * 0x101, uint32(s.G) * 0x101, uint32(s.B) * 0x101, uint32(s.A) * 0x101
}

// windows1252 encodes text for a PDF; characters that the encoding lacks become dots.
func windows1252(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch i := strings.IndexRune(windowsOnly, r); {
		case r < 0x80, r >= 0xa0 && r <= 0xff:
			b.WriteByte(byte(r))
		case i >= 0:
			b.WriteByte(byte(0x80 + utf8.RuneCountInString(windowsOnly[:i])))
		default:
			b.WriteByte('.')
		}
	}
	return b.String()
}

// windowsOnly are the characters 0x80 to 0x9f, with control characters for those that are not assigned.
const windowsOnly = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"

// pdfDate matches the creation time of a PDF. Pictures of the same run must have the same bytes.
var pdfDate = regexp.MustCompile(`Date \(D:\d{14}`)

func written(canvas io.WriterTo) ([]byte, error) {
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	return b.Bytes(), err
}
