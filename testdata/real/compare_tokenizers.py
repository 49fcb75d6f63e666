"""Compares `ingot tokenize` with the package tokenizers: the ids of 1 MB of mixed text, and the text of the ids. It also
prints the CPU seconds that both take to load: the package, and the whole process of ingot the first time, when it compiles
the vocabulary, and again, from the compiled form. Each is the least of three.

Usage: compare_tokenizers.py INGOT TOKENIZER.JSON...; fetch_tokenizers.sh gets published ones. It needs the package.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tokenizers import Tokenizer

SIZE = 1_000_000  # bytes of text
PIECES = Path(__file__).resolve().parents[1] / "tokenizers" / "pieces.json"


def mixed(specials):
    """Texts of words, numbers, code, many scripts, white space and special tokens."""
    rng = random.Random(29)
    lists = [*json.loads(PIECES.read_text()), specials]
    out, size = [], 0
    while size < SIZE:
        out.append(rng.choice(rng.choice(lists)))
        size += len(out[-1].encode())
    return "".join(out)


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def load(path):
    """Loads a tokenizer with the package, and returns it with the time."""
    start = time.process_time()
    tokenizer = Tokenizer.from_file(path)
    tokenizer.encode("a")
    return tokenizer, time.process_time() - start


def ingot(program, cache, folder, data, *flags):
    start = cpu_of_children()
    done = subprocess.run(
        [program, "tokenize", folder, *flags], input=data, capture_output=True, check=False, env={**os.environ, "INGOT_CACHE": cache}
    )
    if done.returncode != 0:
        sys.exit(f"ingot tokenize {folder}: {done.stderr.decode()}")
    return done.stdout, cpu_of_children() - start


def main():
    program, failed = sys.argv[1], False
    print(f"{'tokenizer':<24}{'tokens':>9}{'ids':>9}  {'tokenizers':>10}  {'ingot':>7}  {'again':>7}  CPU seconds to load")
    for path in sys.argv[2:]:
        reference = load(path)[0]
        took = min(load(path)[1] for _ in range(3))
        specials = [t.content for t in reference.get_added_tokens_decoder().values()][:50]
        text = mixed(specials)
        want = reference.encode(text, add_special_tokens=False).ids
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "tokenizer.json").symlink_to(path)
            cache = str(Path(folder) / "cache")
            first = min(ingot(program, f"{cache}-{i}", folder, b"a")[1] for i in range(3))
            ingot(program, cache, folder, b"a")
            again = min(ingot(program, cache, folder, b"a")[1] for _ in range(3))
            for form in ("compiled", "plain"):
                got = json.loads(ingot(program, cache if form == "compiled" else str(Path(folder) / "none"), folder, text.encode())[0])
                if got != want:
                    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
                    print(f"{path} ({form}): {len(got)} ids, want {len(want)}; id {at} differs: {got[at:at+5]}, want {want[at:at+5]}")
                    failed = True
            ids = json.dumps(want).encode()
            if ingot(program, cache, folder, ids, "--decode")[0].decode() != reference.decode(want, skip_special_tokens=False):
                print(f"{path}: the text of the ids differs")
                failed = True
        name = Path(path).parts[-3].removeprefix("tokenizer-")
        print(f"{name:<24}{reference.get_vocab_size():>9}{len(want):>9}  {took:>10.2f}  {first:>7.2f}  {again:>7.2f}", flush=True)
    sys.exit(failed)


main()
