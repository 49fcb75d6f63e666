"""Writes convert/tokens/testdata/layouts.json: tokenizers in files other than tokenizer.json, and the ids that their publishers'
libraries give: transformers for vocab.json and merges.txt, mistral-common for tekken.json, tiktoken for its vocabularies.

The vocabulary is that of tokenizer/testdata/llama3, with tokens that no merge makes. mistral-common changes how transformers
loads some checkpoints, so this script has an environment of its own:

    python3 -m venv .cache/layouts-venv
    .cache/layouts-venv/bin/python -m pip install tiktoken==0.14.0 mistral-common==1.13.1 transformers==5.23.0 tokenizers==0.23.3
    .cache/layouts-venv/bin/python testdata/gen/tokenizers/layouts.py
"""

import base64
import json
import os
import random
import tempfile
import unicodedata
from pathlib import Path

os.environ["TRANSFORMERS_OFFLINE"] = "1"

import tiktoken
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from transformers import AutoTokenizer, Qwen3_5Tokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

ROOT = Path(__file__).resolve().parents[3]
TO_TEXT = bytes_to_unicode()
TO_BYTE = {c: b for b, c in TO_TEXT.items()}

LINES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
QWEN = SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + LINES
LLAMA3 = SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + LINES
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
KIMI = (
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + SHORT + r"?|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*" + SHORT
    + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + LINES
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + LINES
)

TEXTS = [
    "", "Hello world, it's the capital of France: Paris.", "I'LL DON'T we've They'RE 's 'ſ", "naïve café Größe ÄÖÜß Ωμέγα Привет",
    "an e\u0301 of two, and \u00e9 of one; \u2126 \u212b ﬁ", "1 22 333 4444 55555 x12345y 3.14159 ٣٤٥", "def f(x):\n    return x**2\n\n\n  y = 1\n",
    '{"name": "get_weather", "arguments": {"city": "Paris"}}', "你好，世界！中文English混合123文本。漢字かな カタカナ", "한국어 문장입니다.", "السلام عليكم",
    "😀 🇩🇪 emoji👍🏽", "  leading and trailing  ", "\t\ttabs\t x", "\n\n\n", "a\r\nb\r\n\r\nc", " " * 40, "CamelCaseHTTPServer snake_case", "a//b///\n/c\n",
    "<|endoftext|>a<|im_start|>user\nhi<|im_end|>", "<|im_end|>\u0338x", "<s>[INST] a [/INST]</s>", "[BOS]a[EOS]<|reserved_token_1100|>", "[gMASK]<sop><|user|>\nhi",
    "<|startoftext|>a<|eos|><|extra_7|><|reg3|><gh_stars>", "zqzqzq zqzq", "quokka quokkaquokka", "ababa babab aabaa", "a b<extra>c <named> d", "<mask> x<mask>", "<pad><unk>",
    "x\u3000y\u00a0z\u2028w",
]


def vocabulary():
    """The tokens as bytes in the order of their ids, and the merges, of a byte-level BPE."""
    model = json.loads((ROOT / "tokenizer/testdata/llama3/tokenizer.json").read_text())["model"]
    special = {"<|begin_of_text|>"}
    tokens = [t for t, _ in sorted(model["vocab"].items(), key=lambda item: item[1]) if all(c in TO_BYTE for c in t) and t not in special and not t.startswith("<|")]
    merges = [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]
    have = set(tokens)
    merges = [m for m in merges if m[0] in have and m[1] in have and m[0] + m[1] in have]
    return [bytes(TO_BYTE[c] for c in t) for t in tokens], merges


def text_of(token):
    return "".join(TO_TEXT[b] for b in token)


def ranks_file(tokens):
    return "".join(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens))


def tiktoken_ids(tokens, pattern, special, nfc, texts):
    model = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks={t: i for i, t in enumerate(tokens)}, special_tokens=special)
    return [model.encode(unicodedata.normalize("NFC", t) if nfc else t, allowed_special="all") for t in texts]


def tiktoken_cases(tokens, texts):
    n = len(tokens)
    extras = [f"<|extra_{i}|>" for i in range(205)]

    def case(name, file, pattern, special, nfc, settings, before=(), config=None):
        ids = tiktoken_ids(tokens, pattern, special, nfc, texts)
        files = {file: "ranks", "tokenizer_config.json": settings}
        if config:
            files["config.json"] = config
        return {"name": name, "files": files, "ids": ids, "special": [[special[b] for b in before] + i for i in ids]}

    def numbered(first, names):
        return {t: first + i for i, t in enumerate(names)}

    qwen = numbered(151643, ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *extras])
    hy = numbered(127957, ["<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>", "<|pad|>", *extras])
    code = "gh_stars filename issue_start issue_comment issue_closed jupyter_start jupyter_text jupyter_code jupyter_output empty_output commit_before commit_msg commit_after reponame"
    arcade = numbered(100257, [
        "<|endoftext|>", *(f"<|fim_{x}|>" for x in ("prefix", "middle", "suffix", "pad")), *(f"<{x}>" for x in code.split()), "<|endofprompt|>", "<|im_start|>", "<|im_end|>",
        "<|pause|>", *(f"<|reg{i}|>" for i in range(8)), "<|extra0|>",
    ])
    glm = numbered(n, [
        "<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|begin_of_image|>",
        "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>",
    ])
    named = {n: "[BOS]", n + 1: "[EOS]", n + 2: "<|im_end|>", n + 9: "<named>"}
    kimi = {named.get(i, f"<|reserved_token_{i}|>"): i for i in range(n, n + 256)}
    added = lambda tokens: {"added_tokens_decoder": {str(i): {"content": t, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True} for i, t in tokens.items()}}
    llama3 = {"<s>": n, "</s>": n + 1, f"<|reserved_token_{n + 2}|>": n + 2, "<extra>": n + 3}
    return [
        case("qwen", "qwen.tiktoken", QWEN, qwen, True, {"tokenizer_class": "QWenTokenizer"}),
        case("hunyuan", "hy.tiktoken", QWEN, hy, True, {"tokenizer_class": "HYTokenizer", "eos_token": "<|eos|>"}),
        case("arcade", "arcade100k.tiktoken", QWEN, arcade, True, {"tokenizer_class": "Arcade100kTokenizer"}),
        case("glm4", "tokenizer.model", LLAMA3, glm, False, {"tokenizer_class": "ChatGLM4Tokenizer", **added({i: t for t, i in glm.items()})}, ("[gMASK]", "<sop>")),
        case("glm4 by type", "tokenizer.model", LLAMA3, glm, False, {}, ("[gMASK]", "<sop>"), {"model_type": "chatglm"}),
        case("kimi", "tiktoken.model", KIMI, kimi, False, {"tokenizer_class": "TikTokenTokenizer", **added(named)}),
        case("llama3", "tokenizer.model", LLAMA3, llama3, False, {"tokenizer_class": "PreTrainedTokenizerFast", **added({n: "<s>", n + 1: "</s>", n + 3: "<extra>"})}),
    ]


def tekken_cases(tokens, texts):
    tokens = [bytes([b]) for b in range(256)] + [t for t in tokens if len(t) > 1]  # mistral-common wants the bytes in order
    vocab = [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": t.decode() if t.isascii() else None} for i, t in enumerate(tokens)]
    unused = [{"rank": len(tokens) + i, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for i, t in enumerate([b"unused", b" unused"])]
    listed = [{"rank": i, "token_str": t, "is_control": True} for i, t in enumerate(["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<pad>", "[THINK]"])]
    cases = []
    for name, version, special, count in [("tekken v3", "v3", None, 30), ("tekken v13", "v13", listed, 10)]:
        data = {
            "config": {"pattern": TEKKEN, "num_vocab_tokens": len(vocab) + 2, "default_vocab_size": len(vocab) + count, "default_num_special_tokens": count, "version": version},
            "vocab": vocab + unused,
        }
        if special:
            data["special_tokens"] = special
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tekken.json"
            path.write_text(json.dumps(data))
            tokenizer = Tekkenizer.from_file(path)
        # It takes special tokens by their ids only, so texts that have some are left out.
        names = {t["token_str"] for t in special or []} | {str(t["token_str"].value) if hasattr(t["token_str"], "value") else t["token_str"] for t in Tekkenizer.DEPRECATED_SPECIAL_TOKENS}
        plain = lambda t: not any(n in t for n in names)
        ids = [tokenizer.encode(t, False, False) if plain(t) else None for t in texts]
        special_ids = [tokenizer.encode(t, True, False) if plain(t) else None for t in texts]
        tokens_of = {"<s>": tokenizer.bos_id, "</s>": tokenizer.eos_id, "[INST]": 3, "<SPECIAL_%d>" % (count - 1): count - 1}
        cases.append({"name": name, "files": {"tekken.json": data}, "ids": ids, "special": special_ids, "tokens": tokens_of})
    return cases


def merged_cases(tokens, merges, texts):
    names = ["<|endoftext|>", "<s>", "</s>", "<pad>", "<unk>", "<mask>"]
    vocab = {text_of(t): i for i, t in enumerate(tokens)}
    vocab.update({t: len(vocab) + i for i, t in enumerate(names)})
    shared = {"vocab": json.dumps(vocab, ensure_ascii=False), "merges": "#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in merges)}
    strip = {"content": "<mask>", "lstrip": True, "normalized": False, "rstrip": False, "single_word": False}
    cases = []
    for name, config, settings, beside in [
        ("gpt2", {"model_type": "gpt2"}, {"tokenizer_class": "GPT2Tokenizer"}, {}),
        ("gpt2 without settings", {"model_type": "gpt2"}, None, {}),
        ("gpt2, a space before", {"model_type": "gpt2"}, {"tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": True}, {}),
        ("opt", {"model_type": "opt"}, {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>", "pad_token": "<pad>"}, {}),
        ("bos and eos are added", {"model_type": "gpt2"}, {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "add_eos_token": True, "bos_token": "<s>", "eos_token": "<new>"}, {}),
        ("no bos", {"model_type": "gpt2"}, {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": None}, {}),
        ("codegen", {"model_type": "phi"}, {"tokenizer_class": "CodeGenTokenizer"}, {"added_tokens.json": {"<extra>": len(vocab), " <named>": len(vocab) + 1}}),
        ("neox", {"model_type": "gpt_neox"}, {"tokenizer_class": "GPTNeoXTokenizer", "add_bos_token": True}, {}),
        ("cohere", {"model_type": "cohere"}, {"tokenizer_class": "CohereTokenizer", "bos_token": "<s>", "add_bos_token": True}, {}),
        ("roberta", {"model_type": "roberta"}, {"tokenizer_class": "RobertaTokenizer"}, {"special_tokens_map.json": {"mask_token": strip}}),
        ("qwen2 by type", {"model_type": "qwen2"}, {"tokenizer_class": "LlamaTokenizerFast"}, {}),
        ("qwen2", {"model_type": "qwen3"}, {"tokenizer_class": "Qwen2Tokenizer"}, {"added_tokens.json": {"<|im_start|>": len(vocab) + 1, "<|im_end|>": len(vocab)}}),
        ("qwen3.5", {"model_type": "qwen3_5"}, {"tokenizer_class": "Qwen2Tokenizer"}, {}),
    ]:
        with tempfile.TemporaryDirectory() as folder:
            files = {"config.json": config, "vocab.json": "vocab", "merges.txt": "merges", **beside}
            if settings is not None:
                files["tokenizer_config.json"] = settings
            for file, data in files.items():
                (Path(folder) / file).write_text(shared[data] if isinstance(data, str) else json.dumps(data))
            if config["model_type"] == "qwen3_5":  # the class does not name the files that it is made of
                tokenizer = Qwen3_5Tokenizer(vocab=vocab, merges=[tuple(m) for m in merges])
            else:
                tokenizer = AutoTokenizer.from_pretrained(folder)
            cases.append({
                "name": name, "files": files, "ids": [tokenizer.encode(t, add_special_tokens=False) for t in texts], "special": [tokenizer.encode(t) for t in texts],
                "eos": tokenizer.eos_token_id, "bos": tokenizer.bos_token_id if tokenizer.bos_token_id is not None else -1,
            })
    return shared, cases


def main():
    tokens, merges = vocabulary()
    # tiktoken takes the first two, which no merge makes, for a word that is one, and the others by any pair of their parts.
    ranked = tokens + [b"quokka", " zqzq".encode(), b"aba", b"bab", b"abab", b"baba"]
    rng = random.Random(18)
    alphabet = "abzq  \n'sSé1234,.;/_-()\\你好啊é\u0301😀"
    texts = TEXTS + ["".join(rng.choice(alphabet) for _ in range(rng.randint(5, 80))) for _ in range(50)]
    shared, cases = merged_cases(tokens, merges, texts)
    shared["ranks"] = ranks_file(ranked)
    cases += tekken_cases(ranked, texts) + tiktoken_cases(ranked, texts)
    for c in cases:
        if c["special"] == c["ids"]:
            del c["special"]
    out = ROOT / "convert" / "tokens" / "testdata" / "layouts.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"shared": shared, "texts": texts, "cases": cases}, ensure_ascii=True, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")
    print(out, out.stat().st_size, "bytes,", len(cases), "cases")


main()
