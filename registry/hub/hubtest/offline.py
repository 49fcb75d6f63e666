"""Reads a repository from the cache alone, as another program left it there. Usage: offline.py FOLDER"""

import filecmp
import os
import sys

from huggingface_hub import scan_cache_dir, snapshot_download

want = sys.argv[1]
got = snapshot_download("tiny/model", local_files_only=True)
for d, _, files in os.walk(want):
    for name in files:
        path = os.path.relpath(os.path.join(d, name), want)
        assert filecmp.cmp(os.path.join(want, path), os.path.join(got, path), shallow=False), path
found = scan_cache_dir()
assert [r.repo_id for r in found.repos] == ["tiny/model"], found
assert not found.warnings, found.warnings
