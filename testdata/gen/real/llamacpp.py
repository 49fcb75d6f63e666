"""Writes testdata/real/llamacpp.json: what llama.cpp computes with SmolLM2-135M-Instruct, for `make test-real`.

For each prompt: its tokens, the greedy continuation, and at each step the tokens whose logits are less than NEAR below the
largest, with the differences. For the built-in text of `ingot verify --against`: its tokens, and the perplexity over the same windows.

Needs llama.cpp with its C API, on Linux with glibc 2.38 or later:

    python3 -m venv .cache/llamacpp-venv
    .cache/llamacpp-venv/bin/python -m pip install --no-deps llama-cpp-py-sync==0.11739 cffi==2.1.0 pycparser==3.0 numpy==2.4.6
    .cache/llamacpp-venv/bin/python testdata/gen/real/llamacpp.py "$(testdata/real/fetch.sh smollm2)"
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
from llama_cpp_py_sync import _cffi_bindings as bindings
from llama_cpp_py_sync import _version as version

ffi, llama = bindings.get_ffi(), bindings.get_lib()

ROOT = Path(__file__).resolve().parents[3]
WINDOW = 512  # of runtime/verify: windows overlap by half, and each token is predicted once
STEPS = 64
NEAR = 0.5


def chat(text):
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    return f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


PROMPTS = [
    chat("What is the capital of France?"),
    chat("Write a short story about a lighthouse keeper and a whale."),
    chat("List three uses of copper, each with one sentence."),
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    "The mitochondrion is the part of the cell that",
]


class Model:
    def __init__(self, path):
        llama.llama_backend_init()
        self.model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
        if self.model == ffi.NULL:
            sys.exit(f"llama.cpp cannot load {path}")
        self.vocabulary = llama.llama_model_get_vocab(self.model)
        self.size = llama.llama_vocab_n_tokens(self.vocabulary)
        params = llama.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = 2 * WINDOW, WINDOW, WINDOW
        self.context = llama.llama_init_from_model(self.model, params)

    def tokens(self, text, add_special=False):
        data = text.encode()
        out = ffi.new("int32_t[]", len(data) + 8)
        n = llama.llama_tokenize(self.vocabulary, data, len(data), out, len(out), add_special, True)
        return [out[i] for i in range(n)]

    def clear(self):
        llama.llama_memory_clear(llama.llama_get_memory(self.context), True)

    def logits(self, tokens, position=0, last=1):
        """Processes tokens from a position on, and returns the logits of the last rows."""
        batch = llama.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, position + i, 1, 0
            batch.logits[i] = i >= len(tokens) - last
        if llama.llama_decode(self.context, batch) != 0:
            sys.exit("llama_decode failed")
        rows = np.empty((last, self.size), np.float32)
        for row, i in enumerate(range(len(tokens) - last, len(tokens))):
            rows[row] = np.frombuffer(ffi.buffer(llama.llama_get_logits_ith(self.context, i), 4 * self.size), np.float32)
        llama.llama_batch_free(batch)
        return rows


def greedy(model, prompt):
    tokens = model.tokens(prompt)
    model.clear()
    row, position = model.logits(tokens)[-1], len(tokens)
    steps, near = [], []
    for _ in range(STEPS):
        first = int(row.argmax())
        below = {int(i): round(float(row[first] - row[i]), 4) for i in np.flatnonzero(row > row[first] - NEAR) if i != first}
        steps.append(first)
        near.append(dict(sorted(below.items(), key=lambda item: item[1])))
        row, position = model.logits([first], position)[-1], position + 1
    return {"text": prompt, "tokens": tokens, "greedy": steps, "near": near}


def perplexity(model, text):
    begin, tokens = model.tokens("", add_special=True), model.tokens(text)
    window, loss, counted = WINDOW - len(begin), 0.0, 0
    at, start = 0, 1 - len(begin)
    while start < len(tokens):
        end = min(at + window, len(tokens))
        model.clear()
        rows = model.logits(begin + tokens[at:end], last=end - start + 1)[:-1].astype(np.float64)
        top = rows.max(axis=1)
        logprobs = rows[np.arange(len(rows)), tokens[start:end]] - top - np.log(np.exp(rows - top[:, None]).sum(axis=1))
        loss, counted = loss - logprobs.sum(), counted + len(rows)
        start, at = end, at + window // 2
    return {"begin": begin, "tokens": tokens, "predicted": counted, "perplexity": round(math.exp(loss / counted), 5)}


def main():
    model = Model(sys.argv[1])
    text = (ROOT / "runtime" / "quality" / "text.txt").read_text()
    golden = {
        "llama.cpp": version.__llama_cpp_tag__,
        "prompts": [greedy(model, p) for p in PROMPTS],
        "text": perplexity(model, text),
    }
    out = ROOT / "testdata" / "real" / "llamacpp.json"
    out.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(k) + ": " + (json.dumps(v) if k != "prompts" else "[\n" + ",\n".join(map(json.dumps, v)) + "\n]") for k, v in golden.items())
    out.write_text("{\n" + lines + "\n}\n")


main()
