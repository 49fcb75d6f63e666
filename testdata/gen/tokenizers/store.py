"""Where the goldens of the tokenizers go, and how they are written."""

import json
import pathlib

REPO = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = REPO / "tokenizer"
DATA = PACKAGE / "testdata"


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(path.relative_to(REPO), path.stat().st_size, "bytes")
