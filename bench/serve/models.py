"""The models that are served: shapes of the CPU benchmark with a context for long conversations, and with a tokenizer also
in GGUF."""

import os
import sys
import types

import gguf
import model
import run

CONTEXT = 65536
KINDS = {"normal": 1, "control": 3}  # of tokens, in GGUF


def tokenizer_keys(sizes):
    words = model.vocabulary(sizes["vocab"])
    return [
        ("tokenizer.ggml.model", gguf.STRING, "gpt2"), ("tokenizer.ggml.pre", gguf.STRING, "gpt-2"), ("tokenizer.ggml.tokens", gguf.STRING, words),
        ("tokenizer.ggml.token_type", gguf.INT32, [KINDS["control" if i in (model.BOS, model.EOS) else "normal"] for i in range(len(words))]),
        ("tokenizer.ggml.merges", gguf.STRING, ["\u0120t1 2"]), ("tokenizer.ggml.bos_token_id", gguf.UINT32, model.BOS),
        ("tokenizer.ggml.eos_token_id", gguf.UINT32, model.EOS), ("tokenizer.ggml.add_bos_token", gguf.BOOL, False),
    ]


def served(shape):
    return types.SimpleNamespace(**{
        **vars(shape), "tokenizer_keys": tokenizer_keys, "config": lambda sizes: {**shape.config(sizes), "max_position_embeddings": CONTEXT},
        "keys": lambda sizes: [*shape.keys(sizes), ("context_length", gguf.UINT32, CONTEXT)],
    })


class Models(run.Models):
    """A shape's files for serving, beside those of the CPU benchmark."""

    def __init__(self, name, ingot):
        super().__init__(name, ingot)
        self.shape, self.image = served(self.shape), f"serve-{name}"
        self.folder += "-serve"
        os.makedirs(self.folder, exist_ok=True)
        self.store, self.whole = self.file("store"), self.file("bf16.gguf")

    def gguf(self):
        """The GGUF file that both servers get, and an image that has its codes."""
        path = run.make(self.file("Q4_0.gguf"), self.quantized)
        if os.path.exists(self.whole):
            os.remove(self.whole)
        run.run(self.ingot, "create", self.image, path, "--quiet", env={"INGOT_HOME": self.store})
        return path

    def quantized(self, path):
        run.make(self.whole, lambda part: model.write_gguf(self.shape, self.sizes, part))
        run.run(sys.executable, os.path.join(run.HERE, "llama.py"), "quantize", self.whole, path, "Q4_0")

    def checkpoint(self):
        """An image of the checkpoint, for shapes that llama.cpp is not measured with."""
        rules = [word for rule in getattr(self.shape, "RULES", []) for word in ("--quantize-rule", rule)]
        self.create("-q", "int4", "--uniform", *rules)
