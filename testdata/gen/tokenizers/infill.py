"""Writes tokenizer/infill/testdata/golden.json: fill-in-the-middle prompts of published families as ids.

Each family has the special tokens of its published tokenizer, on top of a small tokenizer of the same kind that other
scripts make. The prompts are those of the families' model cards or, for SentencePiece, what their code does.
"""

import json

from tokenizers import Tokenizer

import build
from store import PACKAGE, REPO, write

TEXTS = [
    ("def add(a, b):\n    return ", "\n\nprint(add(1, 2))\n"),
    ("", "the end"),
    ("the start", ""),
    ("  two spaces  ", "  and two more  "),
    ("été 日本 x", "\t\nb🦙"),
]

QWEN = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], ["<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"]
STARCODER = ["<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<repo_name>", "<file_sep>", "<issue_start>", "<jupyter_start>"], []
GRANITE = ["<|end_of_text|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|filename|>", "<|reponame|>", "<|start_of_role|>"], []
SANTA = ["<|endoftext|>", "<fim-prefix>", "<fim-middle>", "<fim-suffix>", "<fim-pad>"], []
DEEPSEEK = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"], ["<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>", "<|User|>", "<|Assistant|>", "<|EOT|>"]
GEMMA = ["<pad>", "<eos>", "<bos>", "<unk>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_separator|>"], []
LLAMA = ["<unk>", "<s>", "</s>", "▁<PRE>", "▁<MID>", "▁<SUF>", "▁<EOT>"], []
CODESTRAL = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]"], []
SEED = ["<[begin▁of▁sentence]>", "<[end▁of▁sentence]>", "<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"], []
GLM = ["<|endoftext|>", "[MASK]", "[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "<|observation|>", "<|code_prefix|>", "<|code_middle|>", "<|code_suffix|>"], []

# Name: base, tokens, prompt with P and S for the texts, tokens that end the text as the references list them.
FAMILIES = {
    "Qwen2.5-Coder": ("tokenizer/testdata/qwen", QWEN, ["<|fim_prefix|>", "P", "<|fim_suffix|>", "S", "<|fim_middle|>"],
                      ["<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"]),
    "CodeGemma": ("testdata/tokenizers/gemma", GEMMA, ["<bos>", "<|fim_prefix|>", "P", "<|fim_suffix|>", "S", "<|fim_middle|>"],
                  ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_separator|>"]),
    "Granite 4": ("tokenizer/testdata/llama3", GRANITE, ["<|fim_prefix|>", "P", "<|fim_suffix|>", "S", "<|fim_middle|>"],
                  ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|filename|>", "<|reponame|>", "<|end_of_text|>"]),
    "StarCoder2": ("tokenizer/testdata/starcoder", STARCODER, ["<fim_prefix>", "P", "<fim_suffix>", "S", "<fim_middle>"],
                   ["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<repo_name>", "<file_sep>", "<|endoftext|>"]),
    "SantaCoder": ("tokenizer/testdata/gpt2", SANTA, ["<fim-prefix>", "P", "<fim-suffix>", "S", "<fim-middle>"],
                   ["<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<fim-pad>", "<|endoftext|>"]),
    "DeepSeek-Coder": ("tokenizer/testdata/deepseek", DEEPSEEK, ["<｜begin▁of▁sentence｜>", "<｜fim▁begin｜>", "P", "<｜fim▁hole｜>", "S", "<｜fim▁end｜>"],
                       ["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "<|EOT|>"]),
    "Code Llama": ("testdata/tokenizers/llama2", LLAMA, ["<s>", "▁<PRE>", "P", "▁<SUF>", "S", "▁<MID>"], ["▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"]),
    "Codestral": ("testdata/tokenizers/llama2", CODESTRAL, ["<s>", "[SUFFIX]", "S", "[PREFIX]", "P"], ["[SUFFIX]", "[PREFIX]"]),
    "Seed-Coder": ("tokenizer/testdata/llama3", SEED, ["<[fim-suffix]>", "S", "<[fim-prefix]>", "P", "<[fim-middle]>"],
                   ["<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"]),
    "GLM-4.5": ("testdata/tokenizers/glm4", GLM, ["<|code_prefix|>", "P", "<|code_suffix|>", "S", "<|code_middle|>"],
                ["<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "<|endoftext|>", "<|user|>", "<|observation|>"]),
}


def with_tokens(path, special, others, bos):
    """Returns the tokenizer of a folder with other added tokens, and those it has."""
    j = json.loads((REPO / path / "tokenizer.json").read_text(encoding="utf-8"))
    vocab = j["model"]["vocab"]
    size = len(vocab) if isinstance(vocab, dict) else len(vocab)
    at, added = size, []
    for name in special + others:
        known = vocab.get(name) if isinstance(vocab, dict) else None
        added.append(build.added(at if known is None else known, name, special=name in special))
        at += known is None
    j["added_tokens"] = added
    j["post_processor"] = build.template(bos, "$A", special=[(bos, [next(t["id"] for t in added if t["content"] == bos)])]) if bos else None
    return Tokenizer.from_str(json.dumps(j)), added, j["post_processor"]


def golden(name):
    base, (special, others), prompt, ends = FAMILIES[name]
    bos = prompt[0] if prompt[0] in ("<s>", "<bos>", "<｜begin▁of▁sentence｜>") else None
    t, added, post = with_tokens(base, special, others, bos)
    pieces = base.endswith("llama2")

    def plain(text):
        return t.encode(text, add_special_tokens=False).ids

    def ids(prefix, suffix):
        if not pieces:
            return plain("".join({"P": prefix, "S": suffix}.get(p, p) for p in prompt))
        word = plain("☺")
        inner = plain("☺" + suffix)
        assert inner[: len(word)] == word
        parts = {"P": plain(prefix), "S": inner[len(word):]}
        return sum((parts.get(p) if p in parts else [t.token_to_id(p)] for p in prompt), [])

    return {
        "base": base, "added_tokens": added, "post_processor": post, "ends": sorted(t.token_to_id(e) for e in ends),
        "prompts": [{"prefix": p, "suffix": s, "ids": ids(p, s)} for p, s in TEXTS],
    }


def main():
    write(PACKAGE / "infill" / "testdata" / "golden.json", {name: golden(name) for name in FAMILIES})


main()
