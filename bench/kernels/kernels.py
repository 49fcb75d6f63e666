"""Times the products of all storage types on each instruction set of this processor: kernels.py [--threads N] [--rounds N]
[--isa A,B] [--rows 1,8] [--types A,B] [--columns N] [--cached]. `make bench-kernels` runs it.

A product is bound by memory (its bytes at the bandwidth of a plain read) or by multiplications (its products at the measured rate of the
instructions that do them), whichever takes longer; `memory` and `multiply` are these times over the measured one, and `share` is the larger.
Products of int16 that use Winograd's method need half of the multiplications, so their share may exceed 1. With few rows unpacking takes
longer than multiplying: `cached` is the time of the same product with its weights in the cache, that is of all of its instructions, over the
measured one. A virtual machine's processors and memory change speed within seconds, so `memory` and `cached` are medians of ratios within a
round. `both` is the time of a plain loop with the same ratio of work to bytes over the measured one (bench/cpu/peaks/overlap.cc): work
that loads operands from the L1 cache does not overlap fully with reading memory on every machine. `slower` compares with the type of the same
number of rows and the same mode of multiplication that has the best share. Writes bench/results/kernels.json.

With one thread, times are those of the processor, so that a busy machine measures, too. --cached prints the times with weights in the cache
instead, as cycles for 64 products, and writes nothing.
"""

import argparse
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SOURCES = os.path.join(ROOT, "mlx", "bridge", "src")
RESULT = os.path.join(ROOT, "bench", "results", "kernels.json")

sys.path.insert(0, os.path.join(ROOT, "bench", "cpu"))
import machine  # noqa: E402

AVX2 = ["-mavx2", "-mfma", "-mf16c"]
AVX512 = AVX2 + ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni"]
# The instructions that a unit may use, by its name: as in mlx/engine/units.go.
UNITS = {
    "avx2": AVX2,
    "avx512": AVX512,
    "avx512vbmi": AVX512 + ["-mavx512vbmi"],
    "avx512bf16": AVX512 + ["-mavx512bf16"],
    "neon": [],
}
# The flags with which the limit of multiplications is measured, by instruction set.
LIMITS = {"portable": [], **{k: v for k, v in UNITS.items() if k != "neon"}, "zen4": UNITS["avx512bf16"], "neon": []}
RATES = {"f32": "fma", "i16": "i16", "i8": "i8", "bf16": "bf16"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--isa", default="")
    parser.add_argument("--rows", default="1,2,4,8,64,512")
    parser.add_argument("--types", default="")
    parser.add_argument("--columns", type=int, default=2048, help="of the matrices, which have 4096 rows")
    parser.add_argument("--cached", action="store_true")
    args = parser.parse_args()
    compiler = (os.environ.get("CXX") or "c++").split()
    with tempfile.TemporaryDirectory() as folder:
        program = build(compiler, folder)
        lines = []
        for isa in args.isa.split(",") if args.isa else LIMITS:
            rates = limits(compiler, folder, isa, args.threads)
            overlap = [] if args.cached else overlaps(compiler, folder, isa, args.threads, args.rounds)
            with machine.Others(os.getpid()) as others:
                measured = measure(program, isa, args)
            if measured:
                lines += [explain(line, rates, overlap) for line in measured]
                print(f"{isa}: others used {100 * others.share:.0f}% of the processor", file=sys.stderr)
    if args.cached:
        return cycles(lines, args.threads)
    compare(lines)
    result = {"machine": machine.describe(), "threads": args.threads, "rounds": args.rounds, "lines": lines}
    os.makedirs(os.path.dirname(RESULT), exist_ok=True)
    with open(RESULT, "w") as f:
        json.dump(result, f, indent=1)
    table(lines)


def build(compiler, folder):
    """Compiles the program, with the kernels alone, as `ingot engine install` compiles them."""
    x86 = machine.platform.machine() in ("x86_64", "AMD64")
    sources = [os.path.join(HERE, "main.cc"), os.path.join(SOURCES, "cpu", "isa.cc"), os.path.join(SOURCES, "cpu", "team", "team.cc")]
    for path in sorted(glob.glob(os.path.join(SOURCES, "cpu", "matmul", "**", "*.cc"), recursive=True)):
        unit = os.path.splitext(os.path.basename(path))[0]
        if unit not in UNITS or (unit == "neon") != x86:
            sources.append(path)
    objects, running = [], []
    for source in sources:
        unit = os.path.splitext(os.path.basename(source))[0]
        objects.append(os.path.join(folder, f"{len(objects)}-{unit}.o"))
        flags = ["-O3", "-falign-functions=64", *UNITS[unit]] if unit in UNITS else ["-O2"]
        running.append(subprocess.Popen([*compiler, "-std=c++20", "-DNDEBUG", "-pthread", "-I" + SOURCES, *flags, "-c", source, "-o", objects[-1]]))
        if len(running) >= (os.cpu_count() or 1):
            check(running.pop(0).wait())
    for process in running:
        check(process.wait())
    program = os.path.join(folder, "kernels")
    check(subprocess.run([*compiler, "-pthread", *objects, "-o", program]).returncode)
    return program


def check(status):
    if status:
        sys.exit("the kernels do not compile")


def compile_limit(compiler, folder, name, isa):
    """Compiles a program of bench/cpu/peaks for an instruction set, and returns its path."""
    program = os.path.join(folder, f"{name}-{isa}")
    source = os.path.join(ROOT, "bench", "cpu", "peaks", name + ".cc")
    check(subprocess.run([*compiler, "-std=c++20", "-O3", *LIMITS[isa], "-pthread", "-o", program, source]).returncode)
    return program


def limits(compiler, folder, isa, threads):
    """Multiply-adds per second of each mode, as the instructions of a set reach them."""
    program = compile_limit(compiler, folder, "peaks", isa)
    try:
        best = collections.defaultdict(float)
        for _ in range(3):
            names = list(RATES.values())
            done = subprocess.run([program, str(threads)], input="\n".join(names) + "\n", stdout=subprocess.PIPE, text=True, check=True)
            for name, value in zip(names, done.stdout.split()):
                best[name] = max(best[name], float(value) * 1e9 / 2)
        return {mode: best[name] for mode, name in RATES.items()}
    except subprocess.CalledProcessError:  # the processor lacks the instructions
        return {}


def overlaps(compiler, folder, isa, threads, rounds):
    """Returns pairs of the last two numbers of overlap.cc's lines, in rising order, or none if the processor lacks the set."""
    program = compile_limit(compiler, folder, "overlap", isa)
    done = subprocess.run([program, str(threads), str(rounds)], stdout=subprocess.PIPE, text=True)
    if done.returncode < 0:  # the processor lacks the instructions
        return []
    check(done.returncode)
    return sorted((float(ratio), float(over)) for _, ratio, over in map(str.split, done.stdout.splitlines()))


def interpolate(pairs, at):
    """Interpolates the second numbers of pairs linearly at a first number. Beyond the ends it is that of the nearest pair."""
    for (x0, y0), (x1, y1) in zip(pairs, pairs[1:]):
        if x0 <= at < x1:
            return y0 + (y1 - y0) * (at - x0) / (x1 - x0)
    return pairs[0][1] if at < pairs[0][0] else pairs[-1][1]


def measure(program, isa, args):
    """Returns the lines of a set, or none if the processor lacks it."""
    lines = []
    for rows in args.rows.split(","):
        many = int(rows) >= 64 or isa == "portable"
        rounds = max(3, args.rounds // 8) if many else args.rounds
        words = [program, str(args.threads), str(rounds), isa, rows, *filter(None, args.types.split(","))]
        if isa == "portable" and int(rows) > 8:
            continue  # minutes for each type
        done = subprocess.run(words, env=os.environ | {"KERNELS_COLUMNS": str(args.columns)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode == 3:
            print(done.stderr.strip(), file=sys.stderr)
            return lines
        if done.returncode:
            sys.exit(done.stderr)
        lines += [json.loads(line) for line in done.stdout.splitlines()]
    return lines


def explain(line, rates, overlap):
    """Adds the shares of the limits that were reached, and the one that binds."""
    rate = rates.get(line["mode"], 0)
    line["multiply"] = round(line["products"] / rate / line["seconds"], 3) if rate else 0
    line["limit"] = "multiply" if line["multiply"] > line["memory"] else "memory"
    line["share"] = max(line["memory"], line["multiply"])
    ratio = line["cached"] / line["memory"] if line["memory"] else float("inf")  # rounded to 0 by portable kernels
    over = max(1, interpolate(overlap, ratio)) if overlap else 1
    line["both"] = round(max(line["memory"], line["cached"]) * over, 3)
    return line


def cycles(lines, threads):
    for line in lines:
        count = line["cached_seconds"] * threads * line["clock"] / line["products"] * line["rows"] * 64
        print(f"{line['isa'] + ' ' + line['type']:28}{line['rows']:4} rows {count:8.2f} cycles for 64 weights")


def compare(lines):
    best = collections.defaultdict(float)
    for line in lines:
        key = line["isa"], line["rows"], line["mode"], line["limit"]
        best[key] = max(best[key], line["share"])
    for line in lines:
        line["slower"] = round(best[line["isa"], line["rows"], line["mode"], line["limit"]] / line["share"], 2)


def table(lines):
    rows = sorted({line["rows"] for line in lines})
    cells = collections.OrderedDict()
    for line in lines:
        cells.setdefault((line["isa"], line["type"]), {})[line["rows"]] = line
    print(f"{'share of the limit, by rows':28}", *(f"{r:>12}" for r in rows))
    for (isa, kind), of in cells.items():
        texts = [f"{of[r]['share']:6.2f} {of[r]['limit'][:5]:5}" if r in of else "-" for r in rows]
        print(f"{isa + ' ' + kind:28}", *(f"{t:>12}" for t in texts))
    left = lines
    bounds = {"share": "their limit explains", "cached": "with their weights in the cache", "both": "a plain loop of as much work"}
    for name, bound in bounds.items():
        late = [line for line in left if line[name] < 1 / 1.15]
        print(f"{len(left) - len(late)} of {len(left)} products take at most 1.15 times as long as {bound}")
        left = late
    for line in left:
        print(f"{line['isa']} {line['type']}, {line['rows']} rows: {1 / max(line['share'], line['both']):.2f}")


main()
