"""Times a small trained model with and without its draft: pair.py INGOT [--rounds N] [--tokens N]. `make bench-pair` runs it.

The pair is testdata/models/gemma4-pair with gemma4_assistant-pair, the prompts are those of its goldens. Each prompt is run plain, with
--draft auto and with fixed numbers of drafts, one after the other, in rounds of alternating order; a figure is the median of the tokens per
second over that of the plain runs. Each takes some hundredths of a second, so single ones tell nothing. Writes bench/results/pair.json.
"""

import argparse
import json
import os
import statistics
import struct
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS, RESULT = os.path.join(ROOT, "testdata", "models"), os.path.join(ROOT, "bench", "results", "pair.json")
GOLDEN = os.path.join(ROOT, "testdata", "reference", "gemma4_assistant-pair.safetensors")
DRAFTS = ("off", "auto", "2", "4")


def prompts():
    """The prompts of the golden: lists of token ids."""
    with open(GOLDEN, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()

    def values(name):
        at, end = header[name]["data_offsets"]
        return struct.unpack(f"<{(end - at) // 4}i", data[at:end])

    ids, count = values("prompts"), len(values("steps"))
    return [ids[i : i + len(ids) // count] for i in range(0, len(ids), len(ids) // count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ingot")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tokens", type=int, default=256)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, INGOT_HOME=os.path.join(folder, "store"))

        def ingot(*words):
            return subprocess.run([args.ingot, "--quiet", *words], env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout

        modelfile = os.path.join(folder, "Modelfile")
        with open(modelfile, "w") as f:
            f.write(f"FROM {MODELS}/gemma4-pair\nDRAFT {MODELS}/gemma4_assistant-pair\n")
        ingot("create", "pair", "-f", modelfile)
        ratios, steps = {d: [] for d in DRAFTS[1:]}, {d: 0 for d in DRAFTS}
        for i, ids in enumerate(prompts()):
            path = os.path.join(folder, "ids.json")
            with open(path, "w") as f:
                json.dump(ids, f)
            rates = {d: [] for d in DRAFTS}
            for n in range(args.rounds):
                for d in DRAFTS[:: -1 if n % 2 else 1]:
                    stats = json.loads(ingot("run", "pair", "--local", "--prompt-ids", path, "--json", "--ignore-eos", "--temperature", "0",
                                             "--max-tokens", str(args.tokens), "--draft", d))["stats"]
                    rates[d].append(stats["tokens"] / stats["seconds"])
                    steps[d] += stats["target_steps"]
            for d, found in ratios.items():
                found.append(statistics.median(rates[d]) / statistics.median(rates["off"]))
            print(f"  prompt {i}: " + ", ".join(f"{d} {found[-1]:.2f}" for d, found in ratios.items()), flush=True)
    count = len(ratios["auto"]) * args.rounds
    result = {
        "over_plain": {d: {"median": round(statistics.median(r), 3), "least": round(min(r), 3)} for d, r in ratios.items()},
        "target_steps": {d: round(s / count, 1) for d, s in steps.items()},
    }
    os.makedirs(os.path.dirname(RESULT), exist_ok=True)
    with open(RESULT, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
