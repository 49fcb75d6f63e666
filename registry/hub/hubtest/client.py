"""Reads the fake hub with the hub's own Python client. Usage: client.py FOLDER-WITH-THE-SAME-FILES"""

import filecmp
import os
import sys

from huggingface_hub import HfApi, hf_hub_download, list_models, snapshot_download
from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

want = sys.argv[1]
names = sorted(os.path.relpath(os.path.join(d, f), want) for d, _, files in os.walk(want) for f in files)

got = snapshot_download("tiny/model")
for name in names:
    assert filecmp.cmp(os.path.join(want, name), os.path.join(got, name), shallow=False), name
info = HfApi().model_info("tiny/model", revision="main")
assert os.path.basename(got) == info.sha, (got, info.sha)
assert sorted(s.rfilename for s in info.siblings) == names
tree = {f.path: f for f in HfApi().list_repo_tree("tiny/model", recursive=True) if hasattr(f, "size")}
assert sorted(tree) == names and tree["model.safetensors"].lfs.size == os.path.getsize(want + "/model.safetensors")
assert [m.id for m in list_models(search="MODEL")] == ["tiny/model"]


def fails(error, *args, **kwargs):
    try:
        hf_hub_download(*args, **kwargs)
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


fails(RepositoryNotFoundError, "tiny/absent", "config.json")
fails(RevisionNotFoundError, "tiny/model", "config.json", revision="v9")
fails(EntryNotFoundError, "tiny/model", "absent.json")
fails(GatedRepoError, "tiny/gated", "config.json", token=False)
hf_hub_download("tiny/gated", "model.safetensors", token=os.environ["TOKEN_OF_TEST"])

print(got)
