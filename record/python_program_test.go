//go:build unix

package record_test

import "testing"

// sites has packages installed in several ways, and asks each which program is its own.
const sites = `
import json, os, subprocess, sys, tempfile
import memdiag

root, package = tempfile.mkdtemp(), os.path.dirname(memdiag.__file__)
def file(path, text=""):
    os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
    with open(os.path.join(root, path), "w") as f:
        f.write(text)
    os.chmod(f.name, 0o700)
def site(path, *programs):
    os.makedirs(os.path.join(root, path))
    os.symlink(package, os.path.join(root, path, "memdiag"))
    if programs:
        file(path + "/memdiag-1.dist-info/METADATA", "Metadata-Version: 2.2\nName: memdiag\nVersion: 1\n")
        file(path + "/memdiag-1.dist-info/RECORD", "memdiag/__init__.py,,\n../../bin/memdiag,,\n")
    for p in programs:
        file(p)
def asks(*folders, **more):
    environment = {**more, "PATH": root, "PYTHONPATH": os.pathsep.join(os.path.join(root, f) for f in folders)}
    found = subprocess.run([sys.executable, "-c", "from memdiag import _program; print(_program.find())"], env=environment, capture_output=True, text=True)
    print(os.path.relpath(found.stdout.strip(), root), found.stderr)
file("memdiag")
site("venv/lib/site", "venv/bin/memdiag")
site("target", "target/bin/memdiag")
site("copy")
asks("venv/lib/site", "target")
asks("target", "venv/lib/site")
asks("copy", "venv/lib/site")
for unpacked in "copy", "target":  # by a memdiag that records
    settings = json.dumps({"agent": os.path.join(root, unpacked), "program": os.path.join(root, "recorder")})
    asks("copy", "venv/lib/site", MEMDIAG_AGENT=settings)
`

// The program of another memdiag that was installed, too, was called; and none after pip install --target.
func TestThePackageFindsItsOwnProgram(t *testing.T) {
	t.Parallel()
	agentProgram(t, sites, "venv/bin/memdiag \ntarget/bin/memdiag \nmemdiag \nrecorder \nmemdiag \n")
}

// unstartable has programs that the system cannot run.
const unstartable = `
import os, subprocess, sys, tempfile, types
import memdiag
from memdiag import _jupyter
sys.modules["pytest"] = types.SimpleNamespace(hookimpl=lambda **_: lambda f: f, fail=lambda text, pytrace: sys.exit(text))
from memdiag.pytest import OPTIONS, judge
test = types.SimpleNamespace(config=types.SimpleNamespace(rootpath="/", inipath=None, pluginmanager=types.SimpleNamespace(hasplugin=lambda name: False)), funcargs={}, nodeid="test")

os.chdir(tempfile.mkdtemp())
for name, content, mode in ("loader", b"#!/there/is/none\n", 0o700), ("format", b"\x00\x01", 0o700), ("mode", b"", 0o600), ("gone", None, 0), ("folder", None, 0):
    if name == "folder":
        os.mkdir(name)
    if content is not None:
        with open(name, "wb") as f:
            f.write(content)
        os.chmod(name, mode)
    os.environ["MEMDIAG"] = os.path.abspath(name)
    ran = subprocess.run([sys.executable, "-m", "memdiag", "version"], capture_output=True, text=True)
    said = [ran.stderr.strip().removeprefix("memdiag: ")]
    for f in lambda: memdiag.diff("a"), lambda: _jupyter.memdiag("", "1"), lambda: judge(test, OPTIONS):
        try:
            f()
        except (RuntimeError, SystemExit) as e:
            said.append(str(e).removesuffix("; it judges this test"))
    print(ran.returncode, len(said), *{s.replace(os.getcwd() + "/", "") for s in said})
for program in "gone", "/bin/true", "/bin/false":
    os.environ["MEMDIAG"] = program
    try:
        memdiag.diff("a")
    except RuntimeError as e:
        print(str(e).replace(os.getcwd(), "here"))
os.environ["MEMDIAG"], os.environ["PATH"] = "", ""
try:
    memdiag.diff("a")
except RuntimeError as e:
    print(e)
`

func TestAProgramThatCannotStartGivesOneSentence(t *testing.T) {
	t.Parallel()
	agentProgram(t, unstartable, `5 4 loader is built for another C library or processor: reinstall memdiag in this environment
5 4 format is built for another C library or processor: reinstall memdiag in this environment
5 4 mode may not be executed: chmod +x it, or install memdiag on a disk that is not mounted noexec
5 4 gone: No such file or directory (the variable MEMDIAG names it)
5 4 folder is a folder: name memdiag's program in the variable MEMDIAG, or unset it
here/gone: No such file or directory (the variable MEMDIAG names it)
/bin/true wrote no JSON: it is not memdiag's program
/bin/false ended with code 1
memdiag's program is not here: install the wheel of memdiag, put memdiag on PATH, or name it in the variable MEMDIAG
`)
}
