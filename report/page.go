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

// About is what a page tells of a run in addition to its comparison. Names in it are
// escaped by Page.
type About struct {
	Name    string        // of the run's folder, or of its files
	Info    snapshot.Info // zero where the run has none
	Version string        // of memdiag
	// Ranks are all of the run, that of the page's comparison too; nil for a run
	// of one process, and where one rank was asked for.
	Ranks []RankResult
	// Commands give the page's figures again, one a line of a shell.
	Commands []string
	// Run is of a page of one snapshot, as in TextOptions.
	Run *diff.Series
}

// RankResult is what was found of one rank.
type RankResult struct {
	Rank   int
	Result *diff.Result // nil where it could not be judged
	Why    string       // why not
}

//go:embed assets
var assets embed.FS

// pageBoxes bounds the flamegraph of a page, which is to stay below 1 MB; memdiag
// flame draws more.
const pageBoxes = 800

// pageRows bounds a page's tables.
const pageRows = 40

// Page writes the comparison as one HTML file that needs nothing else: no network,
// no server, no other file. It opens with the verdict in a sentence; then the
// findings, the growth over the steps, a flamegraph of the growth, where the
// memory is, the ranks, what was not recorded, and how to get all that again.
//
// Its content security policy allows the scripts and styles that it brings, by
// their hashes, and nothing from elsewhere. Every name goes through html/template
// or, in the flamegraph, through the escaping of Flame.
func Page(w io.Writer, r *diff.Result, about About) error {
	return pageView(r, about).write(w)
}

// PageOfOne is Page of a single snapshot: a first verdict from the births of its
// blocks, the largest sites, a flamegraph of what is live, and where the memory is.
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
