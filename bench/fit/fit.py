"""Compares what `ingot fit` predicts with what is then measured: fit.py INGOT WORKER MODEL.gguf [--shapes NAMES] [--rounds N].
`make bench-fit` runs it, in the environment of bench-cpu.

The shapes are three of bench-cpu, with its images, which are made if there are none, and SmolLM2. Of each:

    size      bytes of the tensors, against the sum over the blobs in the store
    memory    of a prompt of 2000 tokens, against the largest resident set of `ingot run`
    decode    tokens per second, against bench-cpu's: 64 tokens after the first
    deep      the same after the context, against 256 tokens after 2048, in which the state is moved to larger storage once
    prefill   of 512 tokens, against bench-cpu's

Predictions and measurements take turns, since the speed of a virtual machine drifts, and medians count. Writes
bench/results/fit.json, and ends with 1 if a prediction is too far off."""

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile

import machine
import run

CONTEXT, PROMPT, TOKENS = 2048, 2000, 40
LIMITS = {"memory": 0.05, "decode": 0.20, "deep": 0.20, "prefill": 0.20}  # relative errors; a size is exact
RESULT = os.path.join(run.RESULTS, "fit.json")
SMOL = "smollm2"


def find(name, ingot):
    """The store and the image of a shape."""
    models = run.Models(name, ingot)
    if not os.path.exists(os.path.join(models.store, "index.json")):
        models.create("-q", getattr(models.shape, "TYPE", "int4"), "--uniform",
                      *(word for rule in getattr(models.shape, "RULES", []) for word in ("--quantize-rule", rule)))
    return models.store, models.image


def output(ingot, store, *arguments):
    env = {**os.environ, "INGOT_HOME": store}
    done = subprocess.run([ingot, *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"ingot {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout)


def predict(ingot, store, image):
    made = output(ingot, store, "fit", image, "--context", str(CONTEXT), "--json")
    return next(t for t in made["types"] if t["type"] == "source")


def blob(store, digest):
    return os.path.join(store, "blobs", *digest.split(":"))


def stored(ingot, store, image):
    """Bytes of the tensors of an image, by the headers of its blobs, and its vocabulary."""
    total, vocab = 0, 0
    with open(blob(store, output(ingot, store, "show", image, "--json")["digest"])) as f:
        layers = json.load(f)["layers"]
    for layer in layers:
        if layer["annotations"].get("org.cncf.model.filepath") == "config.json":
            with open(blob(store, layer["digest"])) as f:
                vocab = json.load(f)["vocab_size"]
        if layer["mediaType"] == "application/vnd.cncf.model.weight.v1.raw":
            with open(blob(store, layer["digest"]), "rb") as f:
                header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
            total += sum(t["data_offsets"][1] - t["data_offsets"][0] for name, t in header.items() if name != "__metadata__")
    return total, vocab


def resident(ingot, store, image, vocab):
    """The largest resident set of a run, in bytes."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as ids:
        json.dump([5 + i * 7919 % (vocab - 5) for i in range(PROMPT)], ids)  # of the whole vocabulary
        ids.flush()
        process = subprocess.Popen(
            [ingot, "run", image, "--local", "--prompt-ids", ids.name, "--max-tokens", str(TOKENS), "--ignore-eos", "--temperature", "0"],
            env={**os.environ, "INGOT_HOME": store}, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"ingot run {image} failed")
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def shape(name, args, store, image):
    size, vocab = stored(args.ingot, store, image)
    row = {"shape": name, "size_measured": size}
    worker = run.Worker("ingot", [args.worker, "-store", store, "-image", image])
    commands = {
        "decode": {"op": "decode", "depth": 0, "tokens": 64}, "prefill": {"op": "prefill", "tokens": 512},
        "deep": {"op": "decode", "depth": CONTEXT, "tokens": 256},
    }
    predicted, measured, shares = {key: [] for key in commands}, {key: [] for key in commands}, []
    worker.ask({"op": "prefill", "tokens": 256})  # warms up
    for _ in range(args.rounds):
        now = predict(args.ingot, store, image)
        row["size_predicted"], row["memory_predicted"] = now["bytes"], now["total_memory"]
        for key, of in (("decode", "decode"), ("deep", "decode_at_context"), ("prefill", "prefill")):
            predicted[key].append(now["speed"][of])
        for key, command in commands.items():
            with machine.Others(worker.process.pid) as others:
                answer = worker.ask(command)
            measured[key].append(answer["tokens"] / answer["seconds"])
            shares.append(others.share)
    worker.close()
    row["memory_measured"] = resident(args.ingot, store, image, vocab)
    for key in commands:
        row[f"{key}_predicted"] = round(statistics.median(predicted[key]), 2)
        row[f"{key}_measured"] = round(statistics.median(measured[key]), 2)
    row["others"] = round(statistics.median(shares), 3)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ingot")
    parser.add_argument("worker", help="bench/cpu, built")
    parser.add_argument("gguf")
    parser.add_argument("--shapes", default=f"{SMOL} dense deepseek nemotron")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    args.ingot, args.worker = os.path.abspath(args.ingot), os.path.abspath(args.worker)
    os.makedirs(run.CACHE, exist_ok=True)
    rows, missed = [], []
    with tempfile.TemporaryDirectory() as own:
        for name in args.shapes.split():
            if name == SMOL:
                store, image = own, SMOL
                run.run(args.ingot, "create", image, args.gguf, "--quiet", env={"INGOT_HOME": own})
            else:
                store, image = find(name, args.ingot)
            row = shape(name, args, store, image)
            rows.append(row)
            print(f"{name}: others {row['others']:.0%}", flush=True)
            for key in ("size", *LIMITS):
                ours, real = row[f"{key}_predicted"], row[f"{key}_measured"]
                bad = ours != real if key == "size" else abs(ours / real - 1) > LIMITS[key]
                print(f"  {key:8} predicted {ours:>14,}  measured {real:>14,}  ratio {ours / real:.3f}{'  MISSED' if bad else ''}", flush=True)
                if bad:
                    missed.append(f"{key} of {name}")
    os.makedirs(run.RESULTS, exist_ok=True)
    with open(RESULT, "w") as f:
        json.dump(rows, f, indent=1)
        f.write("\n")
    if missed:
        sys.exit("too far off: " + ", ".join(missed))


if __name__ == "__main__":
    main()
