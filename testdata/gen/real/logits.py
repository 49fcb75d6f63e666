"""Writes testdata/real/MODEL.safetensors: the logits that transformers computes with a published model from its GGUF file, for
`make test-real`. Like the goldens of models/reference.py, it has tokens int32 [T], logits float32 [R, V] of the last R tokens
and greedy int32 [N], the greedy continuation. transformers dequantizes the file to float32.

    .cache/gen-venv/bin/python testdata/gen/real/logits.py MODEL "$(testdata/real/fetch.sh MODEL)"
"""

import os
import sys
from pathlib import Path

os.environ["TRANSFORMERS_OFFLINE"] = "1"

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parents[3]
TEXT = "The capital of France is Paris. In 1969, the first"
TOKENS, GREEDY = 10, 64
MARGIN = 0.01  # least difference of the two largest logits in the continuation
BYTES = 2 << 20  # of logits


def main():
    name, path = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager").eval()
    # SmolLM2's golden has no begin-of-text token; a model that has one computes little without it.
    special = name != "smollm2"
    tokens = tokenizer(TEXT, add_special_tokens=special)["input_ids"][:TOKENS]
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0]
        greedy = list(tokens)
        for _ in range(GREEDY):
            top = model(torch.tensor([greedy])).logits[0, -1].topk(2)
            if top.values[0] - top.values[1] < MARGIN:
                break  # rounding could choose the other
            greedy.append(int(top.indices[0]))
    greedy = greedy[len(tokens) :]
    if len(tokens) != TOKENS or len(greedy) < GREEDY // 2:
        sys.exit(f"{len(tokens)} tokens and {len(greedy)} greedy ones are too few: choose another text")
    logits = logits[-max(1, min(TOKENS, BYTES // (4 * logits.shape[1]))) :].contiguous()
    out = ROOT / "testdata" / "real" / f"{name}.safetensors"
    save_file({"tokens": np.array(tokens, np.int32), "logits": logits.numpy(), "greedy": np.array(greedy, np.int32)}, out)
    print(out, len(logits), "rows,", len(greedy), "greedy tokens, standard deviation of the logits", float(logits.std()))


main()
