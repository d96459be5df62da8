package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Overlay makes a folder that looks like the folder of a command's script, but with other text in some files. It returns the command
// with the script in that folder. Everything else in it is a link to the original. remove deletes the folder.
func Overlay(args []string, files []File) (command []string, remove func(), err error) {
	at := slices.IndexFunc(args, func(a string) bool {
		info, err := os.Stat(a)
		return strings.HasSuffix(a, ".py") && err == nil && info.Mode().IsRegular()
	})
	if at < 0 {
		return nil, nil, errors.New("the command names no script of Python's, so that its files cannot be exchanged")
	}
	script, err := filepath.Abs(args[at])
	if err == nil {
		script, err = filepath.EvalSymlinks(script) // as Python does
	}
	if err != nil {
		return nil, nil, err
	}
	root := filepath.Dir(script)
	texts := make(map[string]string)
	for _, f := range files {
		name, err := filepath.EvalSymlinks(f.Name)
		if err != nil {
			return nil, nil, err
		}
		below, err := filepath.Rel(root, name)
		if err != nil || !filepath.IsLocal(below) {
			return nil, nil, errors.New(f.Name + " is not below the script's folder, so that it cannot be exchanged")
		}
		texts[below] = f.Text
	}
	if name := filepath.Base(script); texts[name] == "" {
		file, err := Read(script) // a link would lead Python to the original folder
		if err != nil {
			return nil, nil, err
		}
		texts[name] = file.Text
	}
	dir, err := os.MkdirTemp("", "memdiag-patched-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // this removes the links, not their targets
	if err := overlay(root, dir, "", texts); err != nil {
		remove()
		return nil, nil, err
	}
	command = slices.Clone(args)
	command[at] = filepath.Join(dir, filepath.Base(script))
	return command, remove, nil
}

func overlay(root, dir, below string, texts map[string]string) error {
	entries, err := os.ReadDir(filepath.Join(root, below))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(below, e.Name())
		to := filepath.Join(dir, name)
		text, changed := texts[name]
		switch {
		case changed:
			err = os.WriteFile(to, []byte(text), 0o600)
		case e.Name() == "__pycache__":
		case e.IsDir() && holds(texts, name):
			if err = os.Mkdir(to, 0o700); err == nil {
				err = overlay(root, dir, name, texts)
			}
		default:
			err = os.Symlink(filepath.Join(root, name), to)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// holds reports whether any of the files is below a folder.
func holds(texts map[string]string, folder string) bool {
	for name := range texts {
		if strings.HasPrefix(name, folder+string(filepath.Separator)) {
			return true
		}
	}
	return false
}
