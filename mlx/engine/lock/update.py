#!/usr/bin/env python3
"""Writes the lock files of the engine: every wheel of every flavour and platform, with its sha256.

    python3 mlx/engine/lock/update.py [FLAVOUR...]

pip (22.2 or newer, the user's own, with the index that it is configured for) resolves each flavour once per platform
and reports what it would install; nothing is installed. Run it after changing Version in engine.go, and review the
difference: CUDA's libraries move to the newest that MLX accepts. Takes about five minutes for all flavours.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "3.12"  # any version that MLX's wheels accept: they contain no Python code; pip.go uses the same


def linux(machine):
    """The tags of glibc 2.35, which MLX's wheels require, and older. manylinux2014 includes its predecessors."""
    return [[f"manylinux_2_{minor}_{machine}" for minor in range(35, 16, -1)] + [f"manylinux2014_{machine}"]]


LINUX = {"linux/amd64": linux("x86_64"), "linux/arm64": linux("aarch64")}
# Each macOS version has its own wheel, so each is resolved separately. Newest first: pip prefers the first tag.
MACOS = {"darwin/arm64": [["macosx_26_0_arm64"], ["macosx_15_0_arm64"], ["macosx_14_0_arm64"]]}

FLAVOURS = {
    "cpu": (["mlx-cpu=={version}"], LINUX),
    # MLX compiles kernels at run time against CUDA's headers and looks for them in nvidia/cuda_runtime/include. The
    # CUDA 12 wheel leaves them to an installed toolkit (it does not require the package); we do not rely on one. The
    # package lacks crt/mma.h, which only nvidia-cuda-nvcc-cu12 has, in another folder. MLX needs it for its Hopper
    # kernel for packed weights alone (qmm_sm90), which ingot does not use: see dequantizes_first in matmul.cc.
    "cuda12": (["mlx-cuda-12=={version}", "nvidia-cuda-runtime-cu12==12.9.*"], LINUX),
    # CUDA 13 has a package for what its mma.h includes; MLX compiles that for quantized products on Hopper.
    "cuda13": (["mlx-cuda-13=={version}", "nvidia-cuda-crt==13.*"], LINUX),
    "metal": (["mlx-metal=={version}"], MACOS),
}


def mlx_version():
    source = (HERE.parent / "engine.go").read_text()
    return re.search(r'^const Version = "([^"]+)"', source, re.M).group(1)


def resolve(requirements, tags):
    """What pip would install: {name: (version, sha256)}."""
    environment = dict(os.environ)
    environment["PIP_FIND_LINKS"] = ""  # ignore local wheels: others download from the index
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        command += ["--dry-run", "--ignore-installed", "--report", f"{folder}/report.json", "--target", f"{folder}/target"]
        command += ["--only-binary=:all:", "--python-version", PYTHON]
        for tag in tags:
            command += ["--platform", tag]
        subprocess.run(command + requirements, check=True, env=environment, cwd=folder)
        report = json.loads(pathlib.Path(folder, "report.json").read_text())
    found = {}
    for item in report["install"]:
        name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
        url = item["download_info"]["url"]
        if url.startswith("file:"):
            sys.exit(f"update.py: pip took {name} from {url}: remove find-links from pip's configuration")
        found[name] = (item["metadata"]["version"], item["download_info"]["archive_info"]["hashes"]["sha256"])
    return found


def lock(flavour, version):
    requirements, platforms = FLAVOURS[flavour]
    requirements = [r.format(version=version) for r in requirements]
    versions, hashes = {}, {}
    for platform, groups in platforms.items():
        for tags in groups:
            print(f"{flavour}: {platform} {tags[0]}", file=sys.stderr)
            for name, (found, digest) in resolve(requirements, tags).items():
                if versions.setdefault(name, found) != found:
                    sys.exit(f"update.py: {flavour}: {name} is {versions[name]} on one platform and {found} on {platform}")
                hashes.setdefault(name, set()).add(digest)
    lines = [f"# MLX {version}, flavour {flavour}. Made by update.py; do not edit."]
    for platform, groups in platforms.items():
        lines.append(f"# platform {platform} {' '.join(tag for tags in groups for tag in tags)}")
    first = requirements[0].split("==")[0]
    for name in sorted(versions, key=lambda n: (n != first, n)):
        lines.append(" \\\n".join([f"{name}=={versions[name]}"] + [f"    --hash=sha256:{h}" for h in sorted(hashes[name])]))
    return "\n".join(lines) + "\n"


def main():
    version = mlx_version()
    for flavour in sys.argv[1:] or sorted(FLAVOURS):
        if flavour not in FLAVOURS:
            sys.exit(f"update.py: unknown flavour {flavour}: must be one of {', '.join(sorted(FLAVOURS))}")
        text = lock(flavour, version)
        (HERE / f"{flavour}.txt").write_text(text)


if __name__ == "__main__":
    main()
