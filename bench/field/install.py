"""Installs the environments of the field set below ~/.cache/memdiag, or where MEMDIAG_ENVIRONMENTS says.

    install.py                 field, jax and tools, from requirements.txt, requirements-jax.txt and requirements-tools.txt
    install.py versions        for each pair in versions/ an environment that leaks and one that does not
    install.py versions NAME   for one pair

An environment that is there already is left as it is.
"""

import glob
import os
import subprocess
import sys
import venv

import truth

HOME = os.path.expanduser(os.environ.get("MEMDIAG_ENVIRONMENTS", "~/.cache/memdiag"))


def python_of(environment):
    """Returns the path of the interpreter of an environment, whether it is installed or not."""
    return os.path.join(HOME, environment, "bin", "python")


def version_environment(program, which):
    """Returns the name of the environment of one side of a pair; which is leaky or mended."""
    return os.path.join("versions", f"{program.name}-{which}")


def tools():
    """Returns the folder of the packages that peers.py compares with; each environment can import them."""
    return os.path.join(HOME, "tools")


def install(environment, requirements):
    """Makes an environment with these arguments of pip, unless it is there."""
    folder = os.path.join(HOME, environment)
    done = os.path.join(folder, "installed")
    if os.path.exists(done):
        return
    venv.create(folder, with_pip=True, clear=True)
    subprocess.run([python_of(environment), "-m", "pip", "install", "--quiet", *requirements], check=True)
    with open(done, "w", encoding="utf-8") as file:
        file.write(" ".join(requirements) + "\n")


def share(environment, other):
    """Lets an environment see the packages of another, behind its own."""
    theirs = glob.glob(os.path.join(HOME, other, "lib", "python3*", "site-packages"))
    ours = glob.glob(os.path.join(HOME, environment, "lib", "python3*", "site-packages"))
    with open(os.path.join(ours[0], f"{other}.pth"), "w", encoding="utf-8") as file:
        file.write(theirs[0] + "\n")


def main(arguments):
    if not arguments:
        for environment, name in (("field", "requirements.txt"), ("jax", "requirements-jax.txt")):
            if not os.path.exists(python_of(environment)):
                install(environment, ["-r", os.path.join(truth.HERE, name)])
        if not os.path.exists(tools()):
            requirements = os.path.join(truth.HERE, "requirements-tools.txt")
            pip = [python_of("field"), "-m", "pip", "install", "--quiet"]
            subprocess.run([*pip, "--target", tools(), "-r", requirements], check=True)
        return
    if arguments[0] != "versions":
        sys.exit(__doc__)
    for path in truth.paths(("versions",)):
        program = truth.read(path)
        if arguments[1:] and program.name not in arguments[1:]:
            continue
        for which in ("leaky", "mended"):
            environment = version_environment(program, which)
            install(environment, getattr(program, which).split())
            if program.needs != "field":
                share(environment, program.needs)
            print(f"{environment}: {getattr(program, which)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
