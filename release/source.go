package main

import "fmt"

// refusal is the backend (PEP 517) of the source distribution, and its setup.py, for a pip before 10. pip takes
// that if no wheel fits, as on Windows, or if it is too old to know the wheels' names, and shows what this says.
const refusal = `import sys

sys.exit("""
memdiag has no wheel for this machine or this Python, or this pip is too old to find it.
It has wheels for Linux and macOS 12, on x86-64 and arm64, with Python 3.10 or later.
On Linux and macOS: python -m pip install --upgrade pip
On Windows memdiag does not run; it runs in WSL.
""")
`

// source packs a source distribution from which nothing can be built, and which says why.
func (b *binary) source() (name string, content []byte, err error) {
	version, err := pythonVersion(b.version)
	if err != nil {
		return "", nil, err
	}
	name = "memdiag-" + version
	// It says nothing of the Python that it needs: pip would pass it over for an older one, and say "from versions: none".
	content, err = tarball(name, []file{
		{"PKG-INFO", 0o644, fmt.Appendf(nil, metadata, version, "")},
		{"pyproject.toml", 0o644, []byte("[build-system]\nrequires = []\nbuild-backend = \"refusal\"\nbackend-path = [\".\"]\n")},
		{"refusal.py", 0o644, []byte(refusal)},
		{"setup.py", 0o644, []byte(refusal)},
	}, b.time)
	return name + ".tar.gz", content, err
}
