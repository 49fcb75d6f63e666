"""The CPU benchmark: run.py INGOT WORKER [--shapes dense] [--rounds N]. bench/cpu/run.sh runs it.

Makes its own models (model.py), then measures ingot in both precisions, llama.cpp with two formats, and the machine's own
limits, one after the other, in rounds, so that all see the same machine. Every figure is a median over the rounds; a loaded
machine spoils it, so each line says what else was running. mlx-lm is measured once. Prints figures and ratios; writes
bench/results/cpu.json and, with all rounds, machine and versions, cpu-runs.json beside it.
"""

import argparse
import datetime
import hashlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

import machine
import model
import report

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(HERE, "..", "results")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ingot", "bench-cpu")

# Each figure of a shape: what to do, and how many tokens to time.
FIGURES = {
    "decode0": {"op": "decode", "depth": 0, "tokens": 64},
    "decode2048": {"op": "decode", "depth": 2048, "tokens": 32},
    "prefill512": {"op": "prefill", "tokens": 512},
    "prefill4096": {"op": "prefill", "tokens": 4096},
}
MATHS = ("exact", "fast")
FORMATS = {"llama_q4_0": "Q4_0", "llama_q4_k": "Q4_K"}
PEAKS = {"read_gbps": "read", "fma_gflops": "fma", "i16_gops": "i16", "i8_gops": "i8"}


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
            sys.exit(f"{self.name} ended with {self.process.wait()}")
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


class Models:
    """A shape's files, kept in the user's cache under a key of what they depend on."""

    def __init__(self, name, ingot):
        sources = [os.path.join(HERE, f) for f in ("model.py", "requirements.txt")]
        key = hashlib.sha256(json.dumps(model.SHAPES[name]).encode())
        for source in sources:
            with open(source, "rb") as f:
                key.update(f.read())
        folder = os.path.join(CACHE, f"{name}-{key.hexdigest()[:12]}")
        os.makedirs(folder, exist_ok=True)
        shape = model.SHAPES[name]
        checkpoint = make(os.path.join(folder, "checkpoint"), lambda path: model.write_checkpoint(shape, path))
        self.image, self.store = f"bench-{name}", os.path.join(folder, "store")
        # Always: its quantization may have changed. What is in the store already is not written again.
        run(ingot, "create", self.image, checkpoint, "-q", "int4", "--uniform", "--quiet", env={"INGOT_HOME": self.store})
        self.mlx = make(os.path.join(folder, "mlx"), lambda path: run(
            sys.executable, "-m", "mlx_lm", "convert", "--hf-path", checkpoint, "--mlx-path", path, "-q", "--q-bits", "4", "--q-group-size", "64",
            env={"HF_HUB_OFFLINE": "1"}))
        whole = os.path.join(folder, "bf16.gguf")
        self.gguf = {}
        for who, kind in FORMATS.items():
            def quantize(path, kind=kind):
                make(whole, lambda part: model.write_gguf(shape, part))
                run(sys.executable, os.path.join(HERE, "llama.py"), "quantize", whole, path, kind)

            self.gguf[who] = make(os.path.join(folder, f"{kind}.gguf"), quantize)
        if os.path.exists(whole):
            os.remove(whole)


class Bench:
    def __init__(self, args):
        self.args = args
        self.peaks = Worker("peaks", [machine.compile_peaks(os.path.join(HERE, "peaks", "peaks.cc"), CACHE), str(args.threads)])
        self.limits = {key: [] for key in PEAKS}
        self.loads = []
        self.figures = FIGURES
        if args.quick:
            self.figures = {name: {**command, **{key: command[key] // 8 for key in ("depth", "tokens") if key in command}} for name, command in FIGURES.items()}

    def measure(self, name, worker, command):
        """Tokens per second, or whatever the command gives."""
        with machine.Others(worker.process.pid) as others:
            answer = worker.ask(command)
        value = answer["tokens"] / answer["seconds"] if isinstance(answer, dict) and "seconds" in answer else answer
        self.loads.append(others.share)
        print(f"  {name:32} {report.value(value)}   others {others.share:4.0%}", flush=True)
        return value

    def limit(self):
        for key, what in PEAKS.items():
            self.limits[key].append(self.measure(key, self.peaks, what))

    def shape(self, name):
        models = Models(name, self.args.ingot)
        print(f"{name}: {model.parameters(model.SHAPES[name]) / 1e9:.3f} billion parameters, {self.args.threads} threads", flush=True)
        ingot = Worker("ingot", [self.args.worker, "-store", models.store, "-image", models.image], {"INGOT_CPU_THREADS": str(self.args.threads)})
        llama = {key: Worker(key, [sys.executable, os.path.join(HERE, "llama.py"), path, str(self.args.threads)]) for key, path in models.gguf.items()}
        info = {"ingot": ingot.ask({"op": "info"}), **{key: worker.ask({"op": "info"}) for key, worker in llama.items()}}
        runs = {figure: {} for figure in FIGURES}
        rows = {math: [] for math in MATHS}

        def note(figure, who, value):
            runs[figure].setdefault(who, []).append(value)

        for round in range(1, self.args.rounds + 1):
            print(f"round {round} of {self.args.rounds}", flush=True)
            self.limit()
            for figure, command in self.figures.items():
                for math in MATHS:
                    note(figure, f"ingot_{math}", self.measure(f"{figure} ingot {math}", ingot, {**command, "math": math}))
                for key, worker in llama.items():
                    for flash in self.flash(figure, key, runs):
                        who = key + (" flash" if flash else "")
                        note(figure, who, self.measure(f"{figure} {who}", worker, {**command, "flash": flash}))
            for math in MATHS:
                rows[math].append(self.measure(f"rows ingot {math}", ingot, {"op": "rows", "math": math, "depth": 32}))
        profile = {math: self.measure(f"profile ingot {math}", ingot, {"op": "profile", "math": math, "tokens": 64}) for math in MATHS}
        self.gathered = {math: self.measure(f"gathered ingot {math}", ingot, {"op": "gathered", "math": math}) for math in MATHS}
        self.accuracy = ingot.ask({"op": "accuracy"})
        for worker in (ingot, *llama.values()):
            worker.close()
        mlx = None
        if self.args.mlx:
            print("mlx-lm, once", flush=True)
            mlx = json.loads(subprocess.run([sys.executable, os.path.join(HERE, "mlxlm.py"), models.mlx], check=True, stdout=subprocess.PIPE).stdout)
        return {"info": info, "runs": runs, "rows": rows, "profile": profile, "mlx_lm": mlx}

    @staticmethod
    def flash(figure, key, runs):
        """llama.cpp runs without and with flash attention, and the better median counts. The long prefill takes most of
        the time, so after its first round the one that was slower there is left out."""
        first = runs[figure]
        if figure != "prefill4096" or key not in first or key + " flash" not in first:
            return (False, True)
        return (first[key + " flash"][0] > first[key][0],)


def figures(detail):
    """The figures of one shape, from its rounds."""
    out = {}
    for figure, runs in detail["runs"].items():
        out[figure] = {f"ingot_{math}": round(statistics.median(runs[f"ingot_{math}"]), 2) for math in MATHS}
        for key in FORMATS:
            out[figure][key] = round(max(statistics.median(v) for who, v in runs.items() if who.split()[0] == key), 2)
        out[figure]["mlx_lm"] = None
    if mlx := detail["mlx_lm"]:
        for figure, what in (("decode0", "decode"), ("prefill512", "prefill")):
            out[figure]["mlx_lm"] = round(mlx[what]["tokens"] / mlx[what]["seconds"], 4)
    out["rows8_over_rows1"] = {math: round(report.over_one(detail["rows"][math], "draft"), 3) for math in MATHS}
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ingot")
    parser.add_argument("worker", help="bench/cpu, built")
    parser.add_argument("--shapes", default=os.environ.get("SHAPES", "dense"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument("--quick", action="store_true", help="an eighth of all tokens, and no result: to try the benchmark out")
    parser.add_argument("--no-mlx", dest="mlx", action="store_false", help="leave mlx-lm out")
    args = parser.parse_args()
    args.ingot, args.worker = os.path.abspath(args.ingot), os.path.abspath(args.worker)
    shapes = args.shapes.replace(",", " ").split()
    for name in shapes:
        if name not in model.SHAPES:
            sys.exit(f"no shape {name}: {', '.join(model.SHAPES)}")
    if not shapes or args.rounds < 1 or args.threads < 1:
        sys.exit("shapes, rounds and threads must not be empty or zero")
    os.makedirs(CACHE, exist_ok=True)
    begun = time.monotonic()
    bench = Bench(args)
    details = {name: bench.shape(name) for name in shapes}
    bench.peaks.close()
    result = {name: figures(detail) for name, detail in details.items()}
    result |= {key: round(statistics.median(values), 2) for key, values in bench.limits.items()}
    # Of the first shape: with one shape there is nothing to choose.
    result["bytes_per_token"] = details[shapes[0]]["info"]["ingot"]["bytes_per_token"]
    everything = {
        "result": result, "date": datetime.date.today().isoformat(), "rounds": args.rounds, "threads": args.threads,
        "machine": machine.describe(), "python": platform.python_version(), "minutes": round((time.monotonic() - begun) / 60, 1),
        "others": {"median": round(statistics.median(bench.loads), 3), "most": round(max(bench.loads), 3)},
        "limits": bench.limits, "accuracy": bench.accuracy, "gathered": bench.gathered, "shapes": details,
    }
    print(report.text(everything))
    if args.quick:
        return
    os.makedirs(RESULTS, exist_ok=True)
    for name, value in (("cpu.json", result), ("cpu-runs.json", everything)):
        with open(os.path.join(RESULTS, name), "w") as f:
            json.dump(value, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()
