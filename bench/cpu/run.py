"""The CPU benchmark: run.py INGOT WORKER [--shapes "dense moe gptoss gemma4 qwen35 deepseek nemotron"] [--rounds N] [--figures "decode0 ..."]. bench/cpu/run.sh runs it.

Makes its own models (model.py), then measures ingot in both precisions, llama.cpp with two formats, and the machine's own
limits, one after the other, in rounds, so that all see the same machine. Every figure is a median over the rounds; a loaded
machine spoils it, so each line says what else was running. mlx-lm is measured once, with dense. What llama.cpp does not run
is null. Before that a small model of each shape, not quantized, is run by ingot and by llama.cpp, and their scores compared.
Prints figures and ratios; writes bench/results/cpu.json and, with all rounds, machine and versions, cpu-runs.json beside it.
Shapes that were measured on this machine before stay in both.
"""

import argparse
import datetime
import hashlib
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

import machine
import model
import model_dense
import model_deepseek
import model_gemma4
import model_gptoss
import model_moe
import model_nemotron
import model_qwen35
import report

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(HERE, "..", "results")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ingot", "bench-cpu")

SHAPES = {name: shape for shape in (model_dense, model_moe, model_gptoss, model_gemma4, model_qwen35, model_deepseek, model_nemotron) for name in shape.SIZES}

# Each figure of a shape: what to do, and how many tokens to time.
FIGURES = {
    "decode0": {"op": "decode", "depth": 0, "tokens": 64},
    "decode2048": {"op": "decode", "depth": 2048, "tokens": 32},
    "prefill512": {"op": "prefill", "tokens": 512},
    "prefill4096": {"op": "prefill", "tokens": 4096},
}
MATHS = ("exact", "fast")
FORMATS = {"llama_q4_0": "Q4_0", "llama_q4_k": "Q4_K"}  # of most shapes; figures are compared with the first
PROMPT = 16  # tokens, after which scores are compared
FIRST = "dense"
PEAKS = {"read_gbps": "read", "fma_gflops": "fma", "i16_gops": "i16", "i8_gops": "i8"}


class Gone(Exception):
    """A worker has ended."""


class Worker:
    """A process that answers lines with lines of JSON. It sleeps while others are measured."""

    def __init__(self, name, command, env=None):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})

    def ask(self, line):
        try:
            self.process.stdin.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline()
        if not answer:
            raise Gone(f"{self.name} ended with {self.process.wait()}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        if self.process.wait():
            sys.exit(f"{self.name} ended with {self.process.returncode}")


def run(*command, env=None):
    done = subprocess.run(command, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout.decode(errors='replace')}")


def make(path, maker):
    """Makes a file or folder once, under a name of its own until it is whole."""
    if not os.path.exists(path):
        print(f"making {path}", file=sys.stderr)
        part = path + ".part"
        shutil.rmtree(part, ignore_errors=True)
        maker(part)
        os.rename(part, path)
    return path


def formats(shape):
    return getattr(shape, "FORMATS", FORMATS)


class Models:
    """A shape's files, kept in the user's cache under a key of what they depend on."""

    def __init__(self, name, ingot):
        self.shape, self.ingot = SHAPES[name], ingot
        self.sizes = self.shape.SIZES[name]
        key = hashlib.sha256(json.dumps(self.sizes).encode())
        for source in ("model.py", "gguf.py", f"{self.shape.__name__}.py", "requirements.txt"):
            with open(os.path.join(HERE, source), "rb") as f:
                key.update(f.read())
        self.folder = os.path.join(CACHE, f"{name}-{key.hexdigest()[:12]}")
        os.makedirs(self.folder, exist_ok=True)
        self.image, self.store = f"bench-{name}", self.file("store")
        self.whole = self.file("bf16.gguf")

    def file(self, name):
        return os.path.join(self.folder, name)

    def create(self, *options):
        checkpoint = make(self.file("checkpoint"), lambda path: model.write_checkpoint(self.shape, self.sizes, path))
        # Always: its quantization may have changed. What is in the store already is not written again.
        run(self.ingot, "create", self.image, checkpoint, *options, "--quiet", env={"INGOT_HOME": self.store})
        return checkpoint

    def plain(self):
        """The image and the GGUF file, not quantized."""
        self.create()
        return make(self.whole, lambda part: model.write_gguf(self.shape, self.sizes, part))

    def packed(self):
        """The image and the peers' files, quantized. llama.cpp's come first, so that its source is gone before the rest."""
        gguf = {who: make(self.file(f"{kind}.gguf"), lambda path, kind=kind: self.quantize(path, kind)) for who, kind in formats(self.shape).items()}
        if os.path.exists(self.whole):
            os.remove(self.whole)
        rules = [word for rule in getattr(self.shape, "RULES", []) for word in ("--quantize-rule", rule)]
        checkpoint = self.create("-q", getattr(self.shape, "TYPE", "int4"), "--uniform", *rules)
        mlx = None
        if self.shape.MLX:
            mlx = make(self.file("mlx"), lambda path: run(
                sys.executable, "-m", "mlx_lm", "convert", "--hf-path", checkpoint, "--mlx-path", path, "-q", "--q-bits", "4", "--q-group-size", "64",
                env={"HF_HUB_OFFLINE": "1"}))
        return gguf, mlx

    def quantize(self, path, kind):
        make(self.whole, lambda part: model.write_gguf(self.shape, self.sizes, part))
        run(sys.executable, os.path.join(HERE, "llama.py"), "quantize", self.whole, path, kind)


class Bench:
    def __init__(self, args):
        self.args = args
        self.peaks = Worker("peaks", [machine.compile_peaks(os.path.join(HERE, "peaks", "peaks.cc"), CACHE), str(args.threads)])
        self.limits = {key: [] for key in PEAKS}
        self.loads = []
        self.gathered, self.accuracy = {}, None
        commands = FIGURES
        if args.quick:
            commands = {name: {**command, **{key: command[key] // 8 for key in ("depth", "tokens") if key in command}} for name, command in FIGURES.items()}
        self.figures, self.prompt = {name: commands[name] for name in args.figures}, commands["prefill512"]

    def measure(self, name, worker, command):
        """Tokens per second, or whatever the command gives."""
        with machine.Others(worker.process.pid) as others:
            answer = worker.ask(command)
        value = answer["tokens"] / answer["seconds"] if isinstance(answer, dict) and "seconds" in answer else answer
        self.loads.append(others.share)
        print(f"  {name:32} {report.value(value)}   others {others.share:4.0%}", flush=True)
        return value

    def limit(self):
        now = {key: self.measure(key, self.peaks, what) for key, what in PEAKS.items()}
        for key, value in now.items():
            self.limits[key].append(value)
        return now

    def ingot(self, models):
        return Worker("ingot", [self.args.worker, "-store", models.store, "-image", models.image], {"INGOT_CPU_THREADS": str(self.args.threads)})

    def llama(self, name, path):
        """llama.cpp with a model, and what it says of itself; none where it does not run it."""
        worker = Worker(name, [sys.executable, os.path.join(HERE, "llama.py"), path, str(self.args.threads)])
        try:
            return worker, worker.ask({"op": "info"})
        except Gone as gone:
            print(f"{gone}: it counts as not there", file=sys.stderr)
            return None, None

    def agreement(self, name):
        """The cosine of the scores that ingot and llama.cpp give after a prompt, by models of the shape that are small and
        not quantized: 1 where both are the same model."""
        models = Models(SHAPES[name].SMALL, self.args.ingot)
        llama, _ = self.llama("llama.cpp", models.plain())
        if not llama:
            return None
        ingot = self.ingot(models)
        ours = ingot.ask({"op": "scores", "tokens": PROMPT})
        theirs = llama.ask({"op": "scores", "ids": ours["ids"]})
        for worker in (ingot, llama):
            worker.close()
        return round(cosine(ours["scores"], theirs["scores"]), 5)

    def shape(self, name):
        agreement = self.agreement(name)
        print(f"{name}: scores of a small model of ingot and of llama.cpp, cosine {agreement}", flush=True)
        models = Models(name, self.args.ingot)
        gguf, mlx_path = models.packed()
        print(f"{name}: {model.parameters(models.shape, models.sizes) / 1e9:.3f} billion parameters, {self.args.threads} threads", flush=True)
        begun = time.monotonic()
        ingot = self.ingot(models)
        info, llama = {"ingot": ingot.ask({"op": "info"})}, {}
        for key, path in gguf.items():
            worker, info[key] = self.llama(key, path)
            if worker:
                llama[key] = worker
        for worker in (ingot, *llama.values()):  # weights that were just written may have to come from the disk, experts one by one
            worker.ask(self.prompt)
        runs = {figure: {} for figure in self.figures}
        rows, profile, skipped, growth = {}, {}, [], None
        limits, loads = {key: [] for key in PEAKS}, len(self.loads)

        def note(figure, who, value):
            runs[figure].setdefault(who, []).append(value)

        for n in range(1, self.args.rounds + 1):
            print(f"round {n} of {self.args.rounds}", flush=True)
            for key, value in self.limit().items():
                limits[key].append(value)
            for figure, command in self.figures.items():
                turns = [(f"ingot_{math}", ingot, {"math": math}) for math in MATHS]
                for key, worker in llama.items():
                    turns += [(key + (" flash" if flash else ""), worker, {"flash": flash}) for flash in self.flash(figure, key, runs)]
                for who, worker, how in turns[:: 1 if n % 2 else -1]:  # whoever comes first finds a machine that did something else
                    note(figure, who, self.measure(f"{figure} {who}", worker, {**command, **how}))
            if not self.args.whole:
                continue
            for math in MATHS:
                rows.setdefault(math, []).append(self.measure(f"rows ingot {math}", ingot, {"op": "rows", "math": math, "depth": 32}))
            if models.shape.SKIPS:
                skipped.append(self.measure("skipped ingot exact", ingot, {**self.prompt, "op": "skipped"}))
        if self.args.whole:
            profile = {math: self.measure(f"profile ingot {math}", ingot, {"op": "profile", "math": math, "tokens": 64}) for math in MATHS}
        if depth := self.args.whole and getattr(models.shape, "DEPTH", None):
            growth = self.measure("growth ingot exact", ingot, {"op": "growth", "depth": depth // (8 if self.args.quick else 1), "tokens": 32})
        if self.args.whole and self.accuracy is None:  # neither is about a shape
            self.gathered = {math: self.measure(f"gathered ingot {math}", ingot, {"op": "gathered", "math": math}) for math in MATHS}
            self.accuracy = ingot.ask({"op": "accuracy"})
        for worker in (ingot, *llama.values()):
            worker.close()
        mlx = None
        if self.args.mlx and self.args.whole and mlx_path:
            print("mlx-lm, once", flush=True)
            mlx = json.loads(subprocess.run([sys.executable, os.path.join(HERE, "mlxlm.py"), mlx_path], check=True, stdout=subprocess.PIPE).stdout)
        loads = self.loads[loads:]
        return {
            "info": info, "agreement": agreement, "runs": runs, "rows": rows, "skipped": skipped, "profile": profile, "growth": growth,
            "mlx_lm": mlx,
            "limits": {key: round(statistics.median(v), 2) for key, v in limits.items()}, "date": datetime.date.today().isoformat(),
            "rounds": self.args.rounds, "minutes": round((time.monotonic() - begun) / 60, 1),
            "others": {"median": round(statistics.median(loads), 3), "most": round(max(loads), 3)},
        }

    @staticmethod
    def flash(figure, key, runs):
        """llama.cpp runs without and with flash attention, and the better median counts. The long prefill takes most of
        the time, so after its first round the one that was slower there is left out."""
        first = runs[figure]
        if figure != "prefill4096" or key not in first or key + " flash" not in first:
            return (False, True)
        return (first[key + " flash"][0] > first[key][0],)


def cosine(a, b):
    dot = lambda x, y: sum(p * q for p, q in zip(x, y, strict=True))  # noqa: E731
    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


def figures(name, detail):
    """The figures of one shape, from its rounds."""
    out = {}
    for figure, runs in detail["runs"].items():
        out[figure] = {f"ingot_{math}": round(statistics.median(runs[f"ingot_{math}"]), 2) for math in MATHS}
        for key in formats(SHAPES[name]):
            medians = [statistics.median(v) for who, v in runs.items() if who.split()[0] == key]
            out[figure][key] = round(max(medians), 2) if medians else None
        out[figure]["mlx_lm"] = None
    if mlx := detail["mlx_lm"]:
        for figure, what in (("decode0", "decode"), ("prefill512", "prefill")):
            out[figure]["mlx_lm"] = round(mlx[what]["tokens"] / mlx[what]["seconds"], 4)
    out["rows8_over_rows1"] = {math: round(report.over_one(rounds, "draft"), 3) for math, rounds in detail["rows"].items()}
    out["bytes_per_token"] = detail["info"]["ingot"]["bytes_per_token"]
    out["read_gbps"] = detail["limits"]["read_gbps"]
    out["agreement"] = detail["agreement"]
    if detail["skipped"]:
        out["prefill512_skipping"] = round(report.skipping(detail), 3)
    return out


def earlier(described):
    """What an earlier run left of this machine."""
    try:
        with open(os.path.join(RESULTS, "cpu-runs.json")) as f:
            runs = json.load(f)
    except FileNotFoundError:
        return {}
    if any(runs[key] != value for key, value in described.items()):
        return {}
    return runs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ingot")
    parser.add_argument("worker", help="bench/cpu, built")
    parser.add_argument("--shapes", default=os.environ.get("SHAPES", "dense"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--figures", default="", help=f"only some of {', '.join(FIGURES)}, and no result: to repeat them often")
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument("--quick", action="store_true", help="an eighth of all tokens, and no result: to try the benchmark out")
    parser.add_argument("--no-mlx", dest="mlx", action="store_false", help="leave mlx-lm out")
    args = parser.parse_args()
    args.ingot, args.worker = os.path.abspath(args.ingot), os.path.abspath(args.worker)
    shapes = args.shapes.replace(",", " ").split()
    for name in shapes:
        if name not in SHAPES:
            sys.exit(f"no shape {name}: {', '.join(SHAPES)}")
    args.figures = args.figures.replace(",", " ").split() or list(FIGURES)
    args.whole = set(args.figures) == set(FIGURES)
    for name in args.figures:
        if name not in FIGURES:
            sys.exit(f"no figure {name}: {', '.join(FIGURES)}")
    if not shapes or args.rounds < 1 or args.threads < 1:
        sys.exit("shapes, rounds and threads must not be empty or zero")
    os.makedirs(CACHE, exist_ok=True)
    begun = time.monotonic()
    bench = Bench(args)
    try:
        details = {name: bench.shape(name) for name in shapes}
    except Gone as gone:
        sys.exit(str(gone))
    bench.peaks.close()
    described = {"machine": machine.describe(), "threads": args.threads}
    kept = args.whole and not args.quick
    before = earlier(described) if kept else {}
    result = {name: figures(name, detail) for name, detail in details.items()}
    if FIRST not in shapes and FIRST in before.get("shapes", {}):
        # What is said of the machine as a whole stays that of the run of dense.
        before["shapes"] |= details
        before["result"] |= result
        everything, result = before, before["result"]
    else:
        details = before.get("shapes", {}) | details
        result = {name: before.get("result", {}).get(name) for name in details} | result | {key: round(statistics.median(values), 2) for key, values in bench.limits.items()}
        result["bytes_per_token"] = details[shapes[0]]["info"]["ingot"]["bytes_per_token"]
        everything = {
            "result": result, "date": datetime.date.today().isoformat(), "rounds": args.rounds, **described, "python": platform.python_version(),
            "minutes": round((time.monotonic() - begun) / 60, 1),
            "others": {"median": round(statistics.median(bench.loads), 3), "most": round(max(bench.loads), 3)},
            "limits": bench.limits, "accuracy": bench.accuracy, "gathered": bench.gathered, "shapes": details,
        }
    print(report.text(everything))
    if not kept:
        return
    os.makedirs(RESULTS, exist_ok=True)
    for name, value in (("cpu.json", result), ("cpu-runs.json", everything)):
        with open(os.path.join(RESULTS, name), "w") as f:
            json.dump(value, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()
