package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/pprof/profile"
)

// sourcePage is pprof's page of source lines. pprof opens any file that a profile names, so it gets copies of the files that may be
// read, with names in a folder of memdiag.
const sourcePage = "/source"

// Limits for copied source files.
const (
	maxSource  = 4 << 20 // bytes of one file
	maxSources = 64 << 20
)

// sourceSite is pprof's page of source lines, with the files that a profile names and that are below the folders after links are
// resolved. Without folders no file is opened. Call end when the page is no longer needed.
func sourceSite(p *profile.Profile, folders []string, say func(string)) (page http.Handler, end func(), err error) {
	if len(folders) == 0 {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "source files are not served: memdiag view --source DIR serves those below a folder", http.StatusForbidden)
		}), func() {}, nil
	}
	copies, err := os.MkdirTemp("", "memdiag-view-")
	if err != nil {
		return nil, nil, &exitError{exitOwn, fmt.Errorf("no folder for copies of source files: %w", err)}
	}
	end = func() { _ = os.RemoveAll(copies) }
	renamed, served, err := copySources(p, folders, copies)
	if err == nil {
		say(fmt.Sprintf("source files below %s that the stacks name: %d", strings.Join(folders, ", "), served))
		page, err = newPprofSite(renamed, []string{sourcePage}, say)
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return withoutPrefix(page, copies), end, nil
}

// copySources copies source files that the profile names, and returns the profile with the names of the copies, whether or not a copy
// exists.
func copySources(p *profile.Profile, folders []string, copies string) (renamed *profile.Profile, served int, err error) {
	var roots []*os.Root
	defer func() {
		for _, r := range roots {
			_ = r.Close() // read only
		}
	}()
	for _, f := range folders {
		real, err := filepath.EvalSymlinks(f)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		var r *os.Root
		if err == nil {
			r, err = os.OpenRoot(real)
		}
		if err != nil {
			return nil, 0, &exitError{exitUsage, withHint(fmt.Errorf("%s: %w", f, reasonOf(err)), "--source names a folder of source files")}
		}
		roots = append(roots, r)
	}
	renamed = p.Copy()
	copied, left := make(map[string]bool), int64(maxSources)
	for _, f := range renamed.Function {
		name := f.Filename
		if name == "" {
			continue
		}
		of := filepath.Join(copies, "relative", filepath.Clean("/"+name))
		if filepath.IsAbs(name) {
			of = filepath.Join(copies, "absolute", filepath.Clean(name))
		}
		f.Filename = of
		if copied[of] {
			continue
		}
		copied[of] = true
		for _, r := range roots {
			text, ok := sourceBelow(r, name, min(maxSource, left))
			if !ok {
				continue
			}
			if err := os.MkdirAll(filepath.Dir(of), 0o700); err != nil {
				break // the name is too long, or a folder of another copy: it has no copy
			}
			if err := os.WriteFile(of, text, 0o600); err != nil {
				break
			}
			left -= int64(len(text))
			served++
			break
		}
	}
	return renamed, served, nil
}

// reasonOf is an error without the call and the path.
func reasonOf(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// sourceBelow reads a regular file below a folder, at most most bytes. A link may lead to another place below the folder.
func sourceBelow(r *os.Root, name string, most int64) (text []byte, ok bool) {
	path := name
	if !filepath.IsAbs(path) {
		if !filepath.IsLocal(path) {
			return nil, false
		}
		path = filepath.Join(r.Name(), path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, false
	}
	below, err := filepath.Rel(r.Name(), real)
	if err != nil || !filepath.IsLocal(below) {
		return nil, false
	}
	// If another file takes its place meanwhile, the root refuses it, or it is opened without waiting.
	if info, err := r.Lstat(below); err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil, false
	}
	f, err := r.OpenFile(below, os.O_RDONLY|notWaiting, 0)
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	text, err = io.ReadAll(io.LimitReader(f, most+1))
	return text, err == nil && int64(len(text)) <= most
}

// withoutPrefix serves a page in which files have the profile's names.
func withoutPrefix(page http.Handler, copies string) http.Handler {
	relative := filepath.Join(copies, "relative")
	names := strings.NewReplacer(filepath.Join(copies, "absolute"), "", relative+string(filepath.Separator), "", relative, ".")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held := &heldResponse{header: w.Header(), code: http.StatusOK}
		page.ServeHTTP(held, r)
		w.WriteHeader(held.code)
		_, _ = io.WriteString(w, names.Replace(held.body.String())) // the browser may have gone
	})
}

// heldResponse is an answer that is changed before it is sent.
type heldResponse struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (h *heldResponse) Header() http.Header         { return h.header }
func (h *heldResponse) WriteHeader(code int)        { h.code = code }
func (h *heldResponse) Write(p []byte) (int, error) { return h.body.Write(p) }
