"""Times a published model, SmolLM2-135M-Instruct, as people get it: real.py INGOT WORKER MODEL.gguf [--rounds N] [--tokens N].
`make bench-real` runs it, in the environment of bench-cpu.

Decode and prefill of the import, whose codes are those of the file (Q4_1), beside llama.cpp with the same file; and of its
int4 and int4-g32, all matrices in these types. All take turns, in rounds of alternating order, and a figure is the median.
llama.cpp counts with the better of its two kinds of attention. Writes bench/results/real.json.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

import machine
import run

RESULT = os.path.join(run.RESULTS, "real.json")
IMAGES = {"import": [], "int4": ["-q", "int4", "--uniform"], "int4-g32": ["-q", "int4-g32", "--uniform"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ingot")
    parser.add_argument("worker", help="bench/cpu, built")
    parser.add_argument("gguf")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tokens", type=int, default=96, help="to decode")
    parser.add_argument("--threads", type=int, default=machine.cores())
    args = parser.parse_args()
    ingot, worker = os.path.abspath(args.ingot), os.path.abspath(args.worker)
    figures = {"decode0": {"op": "decode", "depth": 0, "tokens": args.tokens}, "prefill512": {"op": "prefill", "tokens": 512}}
    with tempfile.TemporaryDirectory() as store:
        turns, workers = [], []
        for name, options in IMAGES.items():
            run.run(ingot, "create", name, args.gguf, *options, "--quiet", env={"INGOT_HOME": store})
            workers.append(run.Worker("ingot", [worker, "-store", store, "-image", name], {"INGOT_CPU_THREADS": str(args.threads)}))
            turns.append((name, workers[-1], {}))
        workers.append(run.Worker("llama.cpp", [sys.executable, os.path.join(run.HERE, "llama.py"), args.gguf, str(args.threads)]))
        turns += [("llama.cpp", workers[-1], {}), ("llama.cpp flash", workers[-1], {"flash": True})]
        rates = {figure: {who: [] for who, _, _ in turns} for figure in figures}
        shares = []
        for n in range(-1, args.rounds):  # the first round warms up
            for figure, command in figures.items():
                for who, process, how in turns[:: -1 if n % 2 else 1]:
                    with machine.Others(process.process.pid) as others:
                        answer = process.ask({**command, **how})
                    if n >= 0:
                        rates[figure][who].append(answer["tokens"] / answer["seconds"])
                        shares.append(others.share)
        for process in workers:
            process.close()
    result = {"machine": machine.describe(), "threads": args.threads, "rounds": args.rounds, "others": round(statistics.median(shares), 3)}
    for figure, by in rates.items():
        medians = {who: round(statistics.median(all_rates), 1) for who, all_rates in by.items()}
        medians["llama.cpp"] = max(medians["llama.cpp"], medians.pop("llama.cpp flash"))
        result[figure] = medians
        print(f"{figure}: " + ", ".join(f"{who} {rate}" for who, rate in medians.items()) + " tokens per second")
        print(f"  import / llama.cpp {medians['import'] / medians['llama.cpp']:.2f}, int4-g32 / int4 {medians['int4-g32'] / medians['int4']:.2f}")
    print(f"others used {result['others']:.0%} of the processor (median)")
    os.makedirs(run.RESULTS, exist_ok=True)
    with open(RESULT, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
