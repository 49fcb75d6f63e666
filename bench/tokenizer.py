"""Times Encode beside the Rust package tokenizers: the same tokenizers, the same text, one core, interleaved.

Usage: tokenizer.py GO_PROGRAM RESULTS. Needs tokenizers 0.23.3. The first run trains the tokenizers on the sources and
documentation of Python's standard library and keeps them in .cache/bench-tokenizer.

The Rust side is the faster of encode and encode_batch_fast (without offsets), of which only the call is timed.
"""

import hashlib
import json
import os
import pathlib
import platform
import statistics
import struct
import subprocess
import sys
import sysconfig
import time

os.environ.update(RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

REPO = pathlib.Path(__file__).resolve().parents[1]
CACHE = REPO / ".cache" / "bench-tokenizer"
VOCAB = 16000
ROUNDS = int(os.environ.get("ROUNDS", "7"))
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2_BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
FALLBACK = ["<0x%02X>" % b for b in range(256)]


def sources(limit):
    out, size = [], 0
    for path in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" in path.parts or "test" in path.parts:
            continue
        text = path.read_text(errors="replace")
        out.append(text)
        size += len(text)
        if size > limit:
            break
    return "".join(out)[:limit]


def train(kind, text):
    lines = [text[i : i + 8000] for i in range(0, len(text), 8000)]
    if kind == "byte-level BPE":
        t = Tokenizer(models.BPE())
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        t.decoder = decoders.ByteLevel()
        t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=VOCAB, show_progress=False, initial_alphabet=GPT2_BYTES))
        return json.loads(t.to_str())
    if kind == "SentencePiece BPE":
        t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        t.pre_tokenizer = pre_tokenizers.Metaspace()
        t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=["<unk>", "<s>", "</s>"] + FALLBACK, show_progress=False))
        j = json.loads(t.to_str())
        replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
        j.update(pre_tokenizer=None, added_tokens=j["added_tokens"][:3], normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace]})
        return j
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t.train_from_iterator(lines, trainers.UnigramTrainer(vocab_size=VOCAB, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>", show_progress=False))
    j = json.loads(t.to_str())
    if kind == "Unigram, unsplit":
        j["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    return j


def main():
    go, results = sys.argv[1:]
    CACHE.mkdir(parents=True, exist_ok=True)
    text = CACHE / "text.txt"
    if not text.exists():
        text.write_text(sources(4_000_000))
    content = text.read_bytes().decode()
    program = subprocess.Popen([go], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "GOMAXPROCS": "1"})
    out = {"machine": platform.processor() or platform.machine(), "text_bytes": len(content.encode()), "vocabulary": VOCAB, "rounds": ROUNDS, "tokenizers": {}}
    for kind in ("byte-level BPE", "SentencePiece BPE", "Unigram", "Unigram, unsplit"):
        path = CACHE / (kind.replace(" ", "-").replace(",", "") + ".json")
        if not path.exists():
            path.write_text(json.dumps(train(kind, content[:3_000_000]), ensure_ascii=False))
        t = Tokenizer.from_file(str(path))
        seconds = {"ours": [], "encode": [], "encode_batch_fast": []}
        for i in range(ROUNDS + 1):
            began = time.perf_counter()
            ids = t.encode(content, add_special_tokens=False).ids
            seconds["encode"].append(time.perf_counter() - began)
            began = time.perf_counter()
            t.encode_batch_fast([content], add_special_tokens=False)
            seconds["encode_batch_fast"].append(time.perf_counter() - began)
            program.stdin.write(f"{path} {text}\n")
            program.stdin.flush()
            ours, n, digest = program.stdout.readline().split()
            seconds["ours"].append(float(ours))
            if digest != hashlib.sha256(struct.pack("<%di" % len(ids), *ids)).hexdigest():
                sys.exit(f"{kind}: {n} ids, and {len(ids)} of the reference, differ")
        median = {k: statistics.median(v[1:]) for k, v in seconds.items()}  # the first is a warm-up
        rust = min(median["encode"], median["encode_batch_fast"])
        rate = lambda s: len(content.encode()) / s / 1e6
        out["tokenizers"][kind] = {"ids": len(ids), "ours_mb_s": round(rate(median["ours"]), 1), "rust_mb_s": round(rate(rust), 1), "ratio": round(rust / median["ours"], 2)}
        print(f"{kind:20} {len(ids):8} ids   ours {rate(median['ours']):6.1f} MB/s   Rust {rate(rust):6.1f} MB/s   ratio {rust / median['ours']:.2f}", flush=True)
    program.stdin.close()
    program.wait()
    if results != "-":
        pathlib.Path(results).write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
