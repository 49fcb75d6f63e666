"""The quality benchmark: run.py INGOT WORKER SMOLLM2.gguf [--models "smollm2 small"] [--parts "llama mlx ingot speed"].
`make bench-quality` runs it, in the environment of bench-cpu.

Each program quantizes the same weights, reads the same text as the same token ids, and is compared with its own float32 or
bf16 base over the same positions. Two models: SmolLM2-135M-Instruct, whose weights are made continuous (noised.py), and a
small one whose widths suit K-quants (train.py). Importance matrices and statistics come from the calibration text of
`ingot calibrate` alone; a text that shares a run of 13 tokens with it is refused.

Results are kept by what they depend on, in the user's cache, so that a run that was interrupted continues, and so is the
time that each of them took. Writes bench/results/quality.json, a list of rows, and quality.svg beside it: divergence over
size, and over speed. Prints how ingot compares at the peers' sizes, and the seconds of all parts.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tokenizers import Tokenizer

import plot
import score
import summary

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "bench" / "cpu"))

import machine  # noqa: E402

RESULTS = ROOT / "bench" / "results"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ingot" / "bench-quality"
TEXT = HERE / "eval.txt"
CALIBRATION = sorted((ROOT / "runtime" / "calibrate" / "text").glob("*.txt"))
RUN = 13  # tokens that the two texts may not have in common
CALIBRATED = 8192  # tokens of the calibration text that each program reads

LLAMA = ["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "IQ4_XS", "Q4_0", "Q3_K_M", "IQ3_M", "IQ3_XXS", "Q2_K"]
NEEDS_IMATRIX, IGNORES_IMATRIX = {"IQ3_XXS"}, {"Q8_0"}
MLX = {
    "int4": ["convert", "-q", "--q-bits", "4", "--q-group-size", "64"],
    "int3": ["convert", "-q", "--q-bits", "3", "--q-group-size", "64"],
    "int4 awq": ["awq", "--bits", "4", "--num-samples", "4"],
    "int4-int5 dynamic_quant": ["dynamic_quant", "--target-bpw", "4.8"],
}
MLX_LIMIT = 600  # seconds, after which a method of mlx-lm is left out
FIRST = "small"  # the model whose times tell which methods would exceed the limit on a larger one
PLAIN = ["int8", "int6", "int5", "int4", "mxfp4"]
SIZES = ["Q4_K_M", "Q4_0", "IQ4_XS", "Q3_K_M"]  # of llama.cpp, at which types are searched
BITS = [4.5, 3.5]
FASTEST = "Q4_K_M"  # of llama.cpp, whose divergence the fastest types have to meet
ROUNDS, WARM, TOKENS = 3, 8, 64  # of the speed


def run(*command, limit=None, cwd=None, **environment):
    """Runs a command and returns its output. None if it takes longer than the limit."""
    words = [str(c) for c in command]
    try:
        done = subprocess.run(words, env={**os.environ, **{k: str(v) for k, v in environment.items()}}, cwd=cwd,
                              capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def digest(*parts):
    key = hashlib.sha256()
    for part in parts:
        key.update(part.read_bytes() if isinstance(part, Path) else json.dumps(part).encode())
    return key.hexdigest()[:16]


class Model:
    """A model, its files, the rows that are known, and the times that they took."""

    def __init__(self, name, args):
        self.name, self.args, self.lock = name, args, threading.Lock()
        self.now = threading.local()  # part: the one that a thread measures
        self.folder = CACHE / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.store = self.folder / "store"
        self.checkpoint = self.folder / "checkpoint"
        self.known = self.folder / "rows.json"
        self.rows = json.loads(self.known.read_text()) if self.known.exists() else {}
        self.clock = self.folder / "times.json"
        self.times = json.loads(self.clock.read_text()) if self.clock.exists() else {}
        self.make_checkpoint()
        self.params = self.count()
        tok = Tokenizer.from_file(str(self.checkpoint / "tokenizer.json"))
        encode = lambda text: tok.encode(text, add_special_tokens=False).ids
        config = json.loads((self.checkpoint / "config.json").read_text())
        text = {"begin": tok.encode("").ids, "tokens": encode(TEXT.read_text()), "context": config["max_position_embeddings"]}
        calibration = [[encode(part) for part in file.read_text().split("\n=====\n")] for file in CALIBRATION]
        if name == "smollm2":
            refuse_overlap(tok, text["tokens"], [ids for kind in calibration for ids in kind])
        self.text, self.windows = self.folder / "text.json", self.folder / "windows.json"
        pieces = windows(text["begin"], calibration)
        self.text.write_text(json.dumps(text))
        self.windows.write_text(json.dumps(pieces))
        self.calibration = "\n".join(tok.decode(ids) for ids in pieces)
        weights = [self.checkpoint / "model.safetensors", self.checkpoint / "tokenizer.json"]
        self.inputs = digest(*weights, TEXT, HERE / "score.py")
        self.calibrated = digest(self.inputs, *CALIBRATION, CALIBRATED)
        pins = (ROOT / "bench" / "cpu" / "requirements.txt").read_text().splitlines()
        self.llama_key = digest(HERE / "llama.py", [p for p in pins if p.startswith("llama")])
        self.mlx_key = digest(HERE / "mlxlm.py", [p for p in pins if p.startswith("mlx")])
        self.program = digest(Path(args.ingot))

    # Files.

    def ingot(self, *words):
        return run(self.args.ingot, *words, "--quiet", INGOT_HOME=self.store)

    def timed(self, what, make):
        """Does something and keeps the time that it took."""
        begun = time.time()
        found = make()
        with self.lock:
            self.times[what] = {"part": getattr(self.now, "part", "checkpoint"), "begin": begun, "end": time.time()}
            self.clock.write_text(json.dumps(self.times, indent=1))
        return found

    def file(self, name, make):
        """A file that is made once, under a name of its own until it is whole."""
        path = self.folder / name
        if not path.exists():
            print(f"{self.name}: making {name}", file=sys.stderr, flush=True)
            self.timed(name.split("-")[0], lambda: make(path))
        return path

    def make_checkpoint(self):
        script = HERE / ("train.py" if self.name == "small" else "noised.py")
        made, key = self.folder / "checkpoint.key", digest(script)
        if not (self.checkpoint.exists() and made.exists() and made.read_text() == key):
            self.timed("checkpoint", lambda: self.write_checkpoint(script))
            made.write_text(key)

    def write_checkpoint(self, script):
        part = self.folder / "checkpoint.part"
        run("rm", "-rf", part, self.checkpoint, self.folder / "source.gguf")
        if self.name == "small":
            run(ROOT / ".cache" / "gen-venv" / "bin" / "python", script, part)
        else:
            self.ingot("create", "published", self.args.gguf)
            plain = self.folder / "f16"
            self.ingot("export", "published", plain, "--dequantize", "f16")
            run(sys.executable, script, plain, part)
            run("rm", "-rf", plain)
        part.rename(self.checkpoint)

    def count(self):
        self.ingot("create", "base", self.checkpoint)
        return json.loads(self.ingot("show", "base", "--json"))["parameters"]

    # Rows.

    def row(self, name, key, make):
        """A row that is measured once for what it depends on."""
        old = self.rows.get(name)
        if old and old["key"] == key:
            return old
        found = self.timed(name, make)
        if "left_out" in found:
            print(f"{self.name}: {name} is left out: {found['left_out']}", flush=True)
        with self.lock:
            self.rows[name] = {**found, "key": key}
            self.known.write_text(json.dumps(self.rows, indent=1))
        if "kl" in found:
            print(f"{self.name}: {name}: {found['bytes'] / 1e6:.1f} MB, {self.bits(found):.2f} bpw, perplexity {found['ppl']:.3f}, "
                  f"KL {found['kl']:.4f} +- {found['kl_error']:.4f}, top-1 {found['top1']:.1%}", flush=True)
        return self.rows[name]

    def bits(self, row):
        return 8 * row["bytes"] / self.params

    def measure(self, part):
        self.now.part = part
        getattr(self, f"measure_{part}")()

    def measure_llama(self):
        script, py = HERE / "llama.py", sys.executable
        source = self.file("source.gguf", lambda p: self.ingot("export", "base", p))
        plain, weighted = digest(self.inputs, self.llama_key), digest(self.calibrated, self.llama_key)
        importance = self.file(f"imatrix-{weighted}.npz", lambda p: run(py, script, "imatrix", self.windows, source, p))
        logits = self.file(f"llama-{plain}.logits", lambda p: run(py, script, "base", self.text, source, p))
        for kind in LLAMA:
            if kind not in NEEDS_IMATRIX:
                self.row(f"llama {kind}", plain, lambda: self.llama(kind, False, source, importance, logits))
            if kind not in IGNORES_IMATRIX:
                self.row(f"llama {kind} imatrix", weighted, lambda: self.llama(kind, True, source, importance, logits))

    def measure_mlx(self):
        logits = self.file(f"mlx-{digest(self.inputs, self.mlx_key)}.logits",
                           lambda p: run(sys.executable, HERE / "mlxlm.py", "base", self.text, self.checkpoint, p))
        for kind, how in MLX.items():
            slow = how[0] != "convert"
            key = digest(self.calibrated if slow else self.inputs, self.mlx_key, how)
            self.row(f"mlx {kind}", key, lambda: self.mlx(kind, logits, slow))

    def llama(self, kind, matrix, source, importance, logits):
        path = self.folder / f"{kind}{'-imatrix' * matrix}.gguf"
        run(sys.executable, HERE / "llama.py", "quantize", source, kind, path, *[importance] * matrix)
        found = json.loads(run(sys.executable, HERE / "llama.py", "compare", self.text, logits, path))
        return {**found, "file": str(path)}

    def mlx(self, kind, logits, slow):
        expected = self.expected(f"mlx {kind}") if slow else 0
        if expected > MLX_LIMIT:
            return {"left_out": f"by its time on the other model, it would take about {expected / 60:.0f} minutes"}
        path, home = self.folder / f"mlx-{kind.replace(' ', '-')}", self.folder / "mlx-home"
        text = home / ".cache" / "mlx-lm" / "calibration_v5.txt"  # where mlx-lm looks for its own
        text.parent.mkdir(parents=True, exist_ok=True)
        run("rm", "-rf", path)
        text.write_text(self.calibration)
        command, *options = MLX[kind]
        source = "--hf-path" if command == "convert" else "--model"
        done = run(sys.executable, "-m", "mlx_lm", command, source, self.checkpoint, "--mlx-path", path, *options,
                   limit=MLX_LIMIT, HOME=home, HF_HUB_OFFLINE=1, cwd=self.folder)
        if done is None:
            return {"left_out": f"it did not finish in {MLX_LIMIT} seconds"}
        found = json.loads(run(sys.executable, HERE / "mlxlm.py", "compare", self.text, logits, path))
        return {**found, "folder": str(path)}

    def expected(self, name):
        """About how many seconds something takes by its time on the smaller model; 0 if that is not known."""
        times = CACHE / FIRST / "times.json"
        if self.name == FIRST or not times.exists():
            return 0
        weights = (CACHE / FIRST / "checkpoint" / "model.safetensors").stat().st_size
        ratio = (self.checkpoint / "model.safetensors").stat().st_size / weights
        took = json.loads(times.read_text()).get(name)
        return ratio * (took["end"] - took["begin"]) if took else 0

    def measure_ingot(self):
        self.row("ingot statistics", digest(self.calibrated, self.program), self.calibrate)
        for kind in PLAIN:
            self.image(f"ingot {kind}", kind, kind)
        self.image("ingot int4 calibrated", "int4-calibrated", "int4", "--calibration", "auto")
        for kind, size in sorted(((k, self.bytes_of(k)) for k in SIZES), key=lambda g: g[1]):
            self.image(f"ingot searched, size of {kind}", f"as-{kind}".lower(), None, "--calibration", "auto", "--target-size", f"{size}B")
        for bits in BITS:
            self.image(f"ingot searched {bits}bpw", f"bits-{bits}", None, "--calibration", "auto", "--target-size", f"{bits}bpw")
        most = min(row["kl"] for row in self.variants(FASTEST))
        self.image(f"ingot searched for speed, KL of {FASTEST}", f"fast-{FASTEST}".lower(), None, "--calibration", "auto",
                   "--max-kl", most, "--quality-text", TEXT, "--speed")
        for name in ["int4", "int4 calibrated", f"searched for speed, KL of {FASTEST}"]:
            row = self.rows[f"ingot {name}"]
            self.row(f"ingot {name}, fast", row["key"], lambda: {**self.verify(row["image"], "fast"), "bytes": row["bytes"]})

    def variants(self, kind):
        """The rows of a type of llama.cpp, with and without an importance matrix."""
        return [self.rows[name] for name in (f"llama {kind}", f"llama {kind} imatrix") if name in self.rows]

    def bytes_of(self, kind):
        return max(row["bytes"] for row in self.variants(kind))

    def calibrate(self):
        self.ingot("calibrate", "base", "--full", "--tokens", CALIBRATED)
        return {}

    def image(self, name, tag, kind, *options):
        """The row of an image in one type, or in searched types."""
        key = digest(self.calibrated if options else self.inputs, self.program, [str(o) for o in options], kind)
        self.row(name, key, lambda: self.quantized(tag, kind, *options))

    def quantized(self, tag, kind, *options):
        words = ["quantize", "base", f"base:{tag}", *[kind] * bool(kind), *options, "--json"]
        if kind:
            size = json.loads(self.ingot(*words, "--dry-run"))["totals"]["bytes"]
        done = json.loads(self.ingot(*words))
        if not kind:
            size = done["search"]["bytes"]
        return {**self.verify(f"base:{tag}", "exact"), "bytes": size}

    def verify(self, image, math):
        found = json.loads(self.ingot("verify", image, "--against", "base", "--text", TEXT, "--json", "--cpu-math", math))
        return {"tokens": found["tokens"], "kl": found["mean_kl"]["value"], "kl_error": found["mean_kl"]["standard_error"],
                "ppl": found["perplexity"]["value"], "top1": found["top1"]["value"], "image": image, "math": math}

    # Speed.

    def measure_speed(self):
        self.timed("speed", self.speeds)

    def speeds(self):
        rows = [(name, row) for name, row in self.rows.items() if "kl" in row and not name.startswith("mlx")]
        rates = {name: [] for name, _ in rows}
        for n in range(ROUNDS):
            for name, row in rows[:: -1 if n % 2 else 1]:
                rates[name].append(self.decode(row))
        for name, values in rates.items():
            self.rows[name]["decode_tps"] = round(statistics.median(values), 1)
            print(f"{self.name}: {name}: {self.rows[name]['decode_tps']} tokens per second", flush=True)
        for name, row in self.rows.items():
            if name.startswith("mlx") and "kl" in row:
                found = json.loads(run(sys.executable, ROOT / "bench" / "cpu" / "mlxlm.py", row["folder"]))["decode"]
                row["decode_tps"] = round(found["tokens"] / found["seconds"], 2)
        self.known.write_text(json.dumps(self.rows, indent=1))

    def decode(self, row):
        """Tokens per second of one sequence, after a first try that warms up."""
        threads = machine.cores()
        commands = [{"op": "decode", "depth": 0, "tokens": n, "math": row.get("math", "exact")} for n in (WARM, TOKENS)]
        if "file" in row:
            words = [sys.executable, ROOT / "bench" / "cpu" / "llama.py", row["file"], threads]
        else:
            words = [self.args.worker, "-store", self.store, "-image", row["image"]]
        lines = "".join(json.dumps(c) + "\n" for c in commands)
        done = subprocess.run([str(w) for w in words], input=lines, env={**os.environ, "INGOT_CPU_THREADS": str(threads)}, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{words} failed:\n{done.stderr[-4000:]}")
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        return answer["tokens"] / answer["seconds"]

    def report(self):
        for name, row in self.rows.items():
            if "kl" in row:
                yield {"name": name, "model": self.name, "bytes": row["bytes"], "bpw": round(self.bits(row), 4), "ppl": round(row["ppl"], 4),
                       "kl": round(row["kl"], 6), "top1": round(row["top1"], 5), "decode_tps": row.get("decode_tps")}


def windows(begin, kinds):
    """The windows that `ingot calibrate` reads: from each kind of text in turn."""
    room, least = score.WINDOW - len(begin), 16
    lists = [[begin + ids[at : at + room] for ids in kind for at in range(0, len(ids), room) if len(ids) - at >= least] for kind in kinds]
    out, count = [], 0
    for i in range(max(map(len, lists))):
        for one in (some[i] for some in lists if i < len(some)):
            if count < CALIBRATED:
                out.append(one[: CALIBRATED - count])
                count += len(out[-1])
    return out


def refuse_overlap(tok, text, calibration):
    seen = {tuple(ids[at : at + RUN]) for ids in calibration for at in range(len(ids) - RUN + 1)}
    for at in range(len(text) - RUN + 1):
        if tuple(text[at : at + RUN]) in seen:
            sys.exit(f"{TEXT} and the calibration text share {tok.decode(text[at : at + RUN])!r}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ingot")
    parser.add_argument("worker", help="bench/cpu, built")
    parser.add_argument("gguf", help="SmolLM2-135M-Instruct, Q4_1")
    parser.add_argument("--models", default=f"{FIRST} smollm2")
    parser.add_argument("--parts", default="llama mlx ingot speed")
    args = parser.parse_args()
    args.ingot, args.worker = os.path.abspath(args.ingot), os.path.abspath(args.worker)
    parts = args.parts.split()
    models = [Model(name, args) for name in args.models.split()]
    with ThreadPoolExecutor(1) as pool:  # mlx-lm's methods keep one core busy for minutes
        beside = [pool.submit(model.measure, "mlx") for model in models if "mlx" in parts]
        for model in models:
            for part in ("llama", "ingot"):
                if part in parts:
                    model.measure(part)
        for done in beside:
            done.result()
    for model in models:
        if "speed" in parts:
            model.measure("speed")
    rows = [row for model in models for row in model.report()]
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "quality.json").write_text(json.dumps(rows, indent=1) + "\n")
    (RESULTS / "quality.svg").write_text(plot.svg(rows))
    for model in models:
        summary.targets(model.name, [r for r in rows if r["model"] == model.name], SIZES, BITS, FASTEST)
    summary.times({model.name: model.times for model in models}, Path(sys.prefix) / "bench-seconds")


if __name__ == "__main__":
    main()
