package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// About is what a page shows of a run in addition to its comparison. Page escapes the names in it.
type About struct {
	Name    string        // name of the run's folder, or of its files
	Info    snapshot.Info // zero if the run has none
	Version string        // of memdiag
	// Ranks are all ranks of the run, including the one that the page compares. It is nil for a run of one process, and if one rank was
	// requested.
	Ranks []RankResult
	// Commands reproduce the page's figures, one shell line each.
	Commands []string
	// Run is for a page of one snapshot, as in TextOptions.
	Run *diff.Series
}

// RankResult is the result of one rank.
type RankResult struct {
	Rank   int
	Result *diff.Result // nil if it could not be judged
	Why    string       // why not
}

//go:embed assets
var assets embed.FS

// pageBoxes bounds the flamegraph of a page, which should stay below 1 MB; memdiag flame draws more boxes.
const pageBoxes = 800

// pageRows bounds a page's tables.
const pageRows = 40

// Page writes the comparison as one self-contained HTML file that needs no network, server or other file. It has the verdict in a
// sentence, the findings, the growth over the steps, a flamegraph of the growth, where the memory is, the ranks, what was not recorded,
// and how to reproduce all that.
//
// Its content security policy allows only its own scripts and styles, by their hashes. Every name is escaped by html/template or, in
// the flamegraph, by Flame.
func Page(w io.Writer, r *diff.Result, about About) error {
	return pageView(r, about).write(w)
}

// PageOfOne is Page for a single snapshot: a first verdict from the births of its blocks, the largest sites, a flamegraph of live
// memory, and where the memory is.
func PageOfOne(w io.Writer, s *snapshot.Snapshot, about About) error {
	return pageOfOne(s, about).write(w)
}

func (v *view) write(w io.Writer) error {
	t, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return fmt.Errorf("page template: %w", err)
	}
	script, err := joined("assets/uplot/uPlot.iife.min.js", "assets/sandwich.js", "assets/flame.js", "assets/page.js")
	if err != nil {
		return err
	}
	style, err := joined("assets/uplot/uPlot.min.css", "assets/flame.css", "assets/page.css")
	if err != nil {
		return err
	}
	v.Script, v.Style = template.JS(script), template.CSS(style) //nolint:gosec // our own assets
	v.Policy = policy(script, style)
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// policy is a content security policy that allows one script and one style.
func policy(script, style string) string {
	return fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'", sourceHash(script), sourceHash(style))
}

// joined is the text of several assets, one after the other.
func joined(names ...string) (string, error) {
	var text []byte
	for _, name := range names {
		part, err := assets.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("page asset: %w", err)
		}
		text = append(append(text, part...), '\n')
	}
	return string(text), nil
}

// sourceHash names a script or style in a content security policy.
func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
