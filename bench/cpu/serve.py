"""The serving benchmark: serve.py INGOT WORKER CLIENTS [--rounds N] [--quick]. `make bench-serve` runs it.

Times the dense model of the CPU benchmark with many requests at once, in rounds, and takes medians: the tokens of eight streams
together over those of one, in both precisions, the first token of a short prompt that comes while one of 4096 tokens is
read, and one stream, plain and with drafts of which each is right with probability 0.7: in mode fast, where reading the weights bounds a
step of two rows, and beside it exact, where multiplying does. Prints what it found and writes
bench/results/serve.json. Last come 32 clients of an `ingot serve` for a minute (bench/clients).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

import machine
import run

STREAMS = 8
DRAFTS, RIGHT = 1, 0.7
RESULT = os.path.join(run.RESULTS, "serve.json")
EMPTY = {
    "streams8_over_1": {"exact": None, "fast": None}, "ttft_short_s": {"alone": None, "behind_4k": None, "behind_4k_chunked": None},
    "spec": {"plain_tok_s": None, "draft_tok_s": None}, "clients32": {"p50_ms": None, "p99_ms": None, "errors": None},
}


def rate(answer):
    return answer["tokens"] / answer["seconds"]


def streams(worker, rounds, tokens):
    times = {}
    for math in run.MATHS:
        ratios = []
        for _ in range(rounds):
            one, many = (rate(worker.ask({"op": "streams", "math": math, "streams": n, "tokens": tokens})) for n in (1, STREAMS))
            ratios.append(many / one)
            print(f"  {math:6} {one:7.1f} tokens/s alone, {many:7.1f} in {STREAMS} streams: {many / one:.2f}", flush=True)
        times[math] = round(statistics.median(ratios), 3)
    return times


def wait(worker, rounds):
    answers = [worker.ask({"op": "wait", "math": "exact"}) for _ in range(rounds)]
    middle = {key: statistics.median(a[key] for a in answers) for key in answers[0]}
    print(f"  a short prompt's first token: {middle['alone']:.2f} s alone, {middle['behind']:.2f} s behind one of 4096 that is read in pieces, "
          f"{middle['whole']:.2f} s behind one that is not", flush=True)
    return {"alone": round(middle["alone"], 4), "behind_4k": round(middle["whole"], 4), "behind_4k_chunked": round(middle["behind"], 4)}


def spec(worker, rounds, tokens):
    rates = {}
    for _ in range(rounds):
        for math, prefix in (("fast", ""), ("exact", "exact_")):
            answer = worker.ask({"op": "spec", "math": math, "tokens": tokens, "drafts": DRAFTS, "right": RIGHT})
            plain, draft = (rate(answer[key]) for key in ("plain", "draft"))
            rates.setdefault(f"{prefix}plain_tok_s", []).append(plain)
            rates.setdefault(f"{prefix}draft_tok_s", []).append(draft)
            print(f"  {math:6} {plain:7.1f} tokens/s plain, {draft:7.1f} with drafts, {answer['accepted']} of {answer['drafted']} accepted "
                  f"in {answer['target_steps']} steps: {draft / plain:.2f}", flush=True)
    return {key: round(statistics.median(found), 2) for key, found in rates.items()}


def clients(program, ingot, models):
    """What 32 clients see in a minute. Errors, open files and requests that are left are faults of the server."""
    done = subprocess.run([program, "-ingot", ingot, "-store", models.store, "-image", models.image], check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    print(f"  {found['clients']} clients: {found['done']} answers, {found['cancelled']} cut off, {found['errors']} errors; a request {found['p50_ms']:.0f} ms "
          f"(99 of 100 within {found['p99_ms']:.0f}), a token {found['next_token_ms']['p50']:.0f} ms, beside slow readers {found['slow_reader_over']:.2f} times that; "
          f"open files {found['open_files']}, memory {found['memory_mb']} MB", flush=True)
    before, after = found["open_files"]
    if found["errors"] or found["left"] or after > before:
        sys.exit(f"clients: {found}")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ingot")
    parser.add_argument("worker", help="bench/cpu, built")
    parser.add_argument("clients", help="bench/clients, built")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument("--quick", action="store_true", help="few tokens, one round, and no result: to try it out")
    args = parser.parse_args()
    rounds, tokens = (1, 8) if args.quick else (args.rounds, 64)
    models = run.Models("dense", args.ingot)
    models.create("-q", "int4", "--uniform")
    worker = run.Worker("ingot", [args.worker, "-store", models.store, "-image", models.image], {"INGOT_CPU_THREADS": str(args.threads)})
    worker.ask({"op": "info"})
    result = dict(EMPTY)
    if os.path.exists(RESULT):
        with open(RESULT) as f:
            result.update(json.load(f))
    result["streams8_over_1"] = streams(worker, rounds, tokens)
    result["spec"] = spec(worker, rounds, 2 * tokens)
    if not args.quick:
        result["ttft_short_s"] = wait(worker, min(rounds, 2))
    worker.close()
    if args.quick:
        return
    result["clients32"] = clients(args.clients, args.ingot, models)
    os.makedirs(run.RESULTS, exist_ok=True)
    with open(RESULT, "w") as f:
        json.dump(result, f, indent=1)
    print(f"wrote {os.path.relpath(RESULT)}")


if __name__ == "__main__":
    main()
