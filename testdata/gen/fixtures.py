"""Runs the scripts that write the committed test data, by the table in README.md.

    fixtures.py [SCRIPT...]           runs all scripts, or those whose names start with SCRIPT
    fixtures.py --check [SCRIPT...]   runs them in a copy of the repository and compares with the committed files

A file that its rule takes for equal stays as it is. A script whose files are not reproducible runs only when SCRIPT is
its name. Exits with status 1 if a script fails or, with --check, if a file differs.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import safe_open

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
# A float may differ by this much of its tensor's standard deviation, and in JSON by this much of itself.
TENSORS, NUMBERS = 1e-4, 1e-9


@dataclass
class Script:
    """A row of the table: a command, the patterns of what it writes, and the rule of comparison."""

    command: str
    writes: list
    rule: str

    def chosen(self, names):
        if self.rule == "no":
            return self.command in names
        return not names or any(self.command.startswith(n) for n in names)

    def files(self, root):
        """The files below root that the script writes, relative to it."""
        found = set()
        for pattern in self.writes:
            for path in root.glob(pattern.rstrip("/")):
                found |= {p for p in path.rglob("*") if p.is_file()} if path.is_dir() else {path}
        return {p.relative_to(root) for p in found}

    def run(self, root):
        """Runs the script of the copy at root; returns whether it succeeded."""
        name, *args = self.command.split()
        begin = time.monotonic()
        done = subprocess.run([sys.executable, root / "testdata" / "gen" / name, *args], cwd=root, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(f"{self.command}: {'ok' if done.returncode == 0 else 'FAILED'}, {time.monotonic() - begin:.0f} s", flush=True)
        if done.returncode != 0:
            print(done.stdout[-4000:])
        return done.returncode == 0


def table():
    """The rows of README.md that have six columns."""
    out = []
    for line in (HERE / "README.md").read_text(encoding="utf-8").splitlines():
        cells = line.strip("|").split(" | ")
        if len(cells) == 6 and cells[0].strip().startswith("`"):
            command, writes, _, _, rule, _ = (re.findall("`([^`]+)`", c) for c in cells)
            out.append(Script(command[0], writes, rule[0]))
    return out


def tensors_of(path):
    with safe_open(path, "np") as file:
        return {n: file.get_tensor(n) for n in file.keys()}, file.metadata()


def equal_tensors(old, new):
    """Whether both files have the same tensors: integers equal, floats nearly."""
    (a, about), (b, again) = tensors_of(old), tensors_of(new)
    if about != again or a.keys() != b.keys():
        return False
    for name, x in a.items():
        y = b[name]
        if x.dtype != y.dtype or x.shape != y.shape:
            return False
        if x.dtype.kind != "f":
            if not np.array_equal(x, y):
                return False
        elif np.abs(x - y).max(initial=0) > TENSORS * max(float(x.std()), 1e-6):
            return False
    return True


def equal_numbers(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= NUMBERS * max(abs(a), abs(b))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(equal_numbers(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal_numbers, a, b))
    return a == b


def is_golden(path):
    """Whether a file has computed values, which the rule tensors compares: weights are compared by their bytes."""
    return path.suffix == ".safetensors" and not path.name.startswith("model") and path.name != "adapter_model.safetensors"


def differs(rule, old, new):
    """Returns "" for equal files, or how they differ."""
    if not new.exists():
        return "is no longer written"
    if not old.exists():
        return "is new"
    if old.read_bytes() == new.read_bytes():
        return ""
    if rule == "numbers" and equal_numbers(json.loads(old.read_text()), json.loads(new.read_text())):
        return ""
    if rule == "tensors" and is_golden(old) and equal_tensors(old, new):
        return ""
    return "differs"


def write(script):
    """Runs a script and restores each file that its rule takes for equal. Returns whether the script succeeded."""
    with tempfile.TemporaryDirectory() as folder:
        names = script.files(REPO)
        for name in names:
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPO / name, Path(folder) / name)
        good = script.run(REPO)
        for name in sorted(names | script.files(REPO)):
            old, new = Path(folder) / name, REPO / name
            if how := differs(script.rule, old, new):
                print(f"  {name}: {how}")
            elif old.read_bytes() != new.read_bytes():
                shutil.copyfile(old, new)
    return good


def tracked():
    """The files of the repository that git does not ignore."""
    out = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=REPO, check=True,
                         stdout=subprocess.PIPE).stdout
    names = {Path(os.fsdecode(name)) for name in out.split(b"\0") if name}
    return sorted(n for n in names if (REPO / n).exists())


def check(scripts):
    """Runs scripts in a copy of the tracked files and reports each file that differs. Returns whether none does."""
    good = True
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in tracked():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPO / name, copy / name)
        for script in scripts:
            names = script.files(REPO)
            begin = time.time() - 1
            if not script.run(copy):
                good = False
            written = {n for n in script.files(copy) if (copy / n).stat().st_mtime >= begin}
            equal = 0
            for name in sorted(written | {n for n in names if not (copy / n).exists()}):
                if how := differs(script.rule, REPO / name, copy / name):
                    print(f"  {name}: {how}")
                    good = False
                else:
                    equal += (REPO / name).read_bytes() == (copy / name).read_bytes()
                # The next script starts from the committed file.
                if (REPO / name).exists():
                    (copy / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(REPO / name, copy / name)
            print(f"  {len(written)} files, {equal} of them equal byte for byte", flush=True)
            good = good and bool(written)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed files, write nothing")
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help="as in README.md, or the beginning of it")
    args = parser.parse_args()
    scripts = [s for s in table() if s.chosen(args.scripts)]
    if not scripts:
        raise SystemExit(f"no script in README.md is {' or '.join(args.scripts)}")
    if args.check:
        good = check(scripts)
    else:
        good = all([write(s) for s in scripts])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
