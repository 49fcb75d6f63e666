"""What the serving benchmark measures of ingot alone, or beside an older ingot. Each part gives a value for serve-parts.json:

    gap     streams beside which a long prompt comes: the longest waits with several values of --max-gap, and what they cost
    first   first tokens of 32 clients whose prompts share a half, beside those of the program --before
    memory  memory of the model's process and of both before and 10 s after each of ten waves of load
    drafts  one stream, plain and with drafts of which each is right with probability 0.7
    talk    a coding client's conversation, dense and hybrid: what a turn spends on tokens that the server has seen
"""

import json
import os
import statistics
import threading
import time

import machine
import run
from client import Background, Stream, prompts, quantile, together, tokens
from models import Models
from servers import Ingot, digest

RESULT = os.path.join(run.RESULTS, "serve-parts.json")

GAPS = (50, 150, 500)  # ms
STREAMS, STREAM_TOKENS, LONG = 4, 1200, 4096
WAVES, WAVE, REST = 10, 32, 10
TURN, PAUSE = 4000, 5  # tokens that a turn adds, and seconds after which a server may have put the conversation away


def load():
    try:
        with open(RESULT) as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


def measure(bench, name):
    """Measures a part, unless this program's result is there. False if there was no time."""
    results, key = load(), {"program": bench.digests["ingot"], "threads": bench.args.threads, "machine": machine.describe()}
    old = results.get(name, {})
    if {k: old.get(k) for k in key} != key:
        old = {}
    if old.get("whole"):
        return True
    if not bench.left():
        return False
    print(f"{name}:", flush=True)
    value = PARTS[name](bench, old)
    if value is None:
        return True
    results[name] = {**value, **key}
    with open(RESULT, "w") as f:
        json.dump(results, f, indent=1)
        f.write("\n")
    return value["whole"]


def gap(bench, _):
    found = {}
    for ms in GAPS:
        with bench.ingot("exact", options=("--max-gap", f"{ms}ms")) as s:
            streams = [s.stream(p, STREAM_TOKENS) for p in prompts(f"gap {ms}", STREAMS, 16, 0)]
            long = s.stream(tokens(f"gap long {ms}", LONG), 1)
            beside = Background(streams)
            beside.speaking(3)
            long.run()
            beside.wait()
        gaps = [b - a for each in streams for a, b in zip(each.times, each.times[1:]) if b > long.begun and a < long.times[0]]
        found[ms] = {
            "itl_p50": round(quantile(gaps, 0.5), 4), "itl_p99": round(quantile(gaps, 0.99), 4), "prefill_tps": round(LONG / long.first, 1),
            "streams_ended": any(each.times[-1] < long.times[0] for each in streams),
        }
        print(f"  --max-gap {ms} ms: gaps {found[ms]['itl_p50']:.3f} s (p99 {found[ms]['itl_p99']:.3f}), prefill {found[ms]['prefill_tps']} tokens/s", flush=True)
    return {"gaps": found, "whole": True}


def first(bench, old):
    if not bench.args.before:
        print("  left out: --before names no older program")
        return None
    before = os.path.abspath(bench.args.before)
    rounds = old.get("rounds", []) if old.get("before") == digest(before) else []
    while len(rounds) < bench.args.rounds and bench.left():
        n, medians = len(rounds) + 1, {}
        turns = [("before", before), ("now", bench.args.ingot)]
        for name, program in turns[:: 1 if n % 2 else -1]:
            with bench.ingot("exact", program) as s:
                streams = [s.stream(p) for p in prompts(f"first {n}", 32, 256, 256)]
                seconds = together(streams)
            medians[name] = {"ttft_p50": quantile([each.first for each in streams], 0.5), "tps": sum(each.tokens for each in streams) / seconds}
            print(f"  {name:6} first token {medians[name]['ttft_p50']:6.2f} s, {medians[name]['tps']:6.1f} tokens/s", flush=True)
        rounds.append(medians)
    ratio = statistics.median(r["before"]["ttft_p50"] / r["now"]["ttft_p50"] for r in rounds) if rounds else None
    return {"rounds": rounds, "earlier": ratio, "before": digest(before), "whole": len(rounds) >= bench.args.rounds}


def memory(bench, _):
    with bench.ingot("exact", options=("--cache-size", "16MB")) as s:
        wave(s, 0)  # allocates what lasts, and fills the prefix cache
        time.sleep(REST)
        before, model_before, after, model_after = s.memory(), s.model_memory(), [], []
        for n in range(1, WAVES + 1):
            most = wave(s, n)
            time.sleep(REST)
            after.append(s.memory())
            model_after.append(s.model_memory())
            print(
                f"  wave {n}: {before} MB before ({model_before} in the model's process), {most} MB during, {after[-1]} MB ({model_after[-1]}) {REST} s "
                f"after", flush=True)
    return {"before_mb": before, "after_mb": after, "model_before_mb": model_before, "model_after_mb": model_after, "whole": True}


def wave(server, n):
    """The load of one wave, and the most memory that was seen during it."""
    most, done = [0], threading.Event()

    def watch():
        while not done.wait(0.5):
            most[0] = max(most[0], server.memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        together([server.stream(p, 8) for p in prompts(f"wave {n}", WAVE, 32, 32)])
    finally:
        done.set()
        watcher.join()
    return most[0]


MORE = (("turn", 0), ("soon", 1), ("later", 1))  # tokens at the end of a turn's prompts


def talk(bench, old):
    """Conversations that grow by a turn at a time. What a turn spends on tokens that were seen is the time to the first
    token of the conversation with one token more: soon after the turn, as a client that runs tools sends it, and later. The
    prefix cache is on disk too, so that a later call goes on where this one ends."""
    turns = old.get("turns", {})
    for shape in ("dense", "qwen35"):
        models = bench.models if shape == "dense" else Models(shape, bench.args.ingot)
        if models is not bench.models:
            models.checkpoint()
        vocab, mine = models.sizes["vocab"], turns.setdefault(shape, [])
        options = ("--cache-dir", models.file("talk"), "--cache-size", "6GB", "--context", "65536", "--num-parallel", "1")
        text = tokens(f"talk {shape}", bench.args.talk_tokens, vocab)
        with Ingot(bench.args.ingot, models.store, models.image, bench.args.threads, bench.log, "exact", options) as s:
            at = mine[-1]["tokens"] if mine else 0
            while at < len(text) and bench.left(2 * mine[-1]["new_s"] if mine else 0):
                at = min(at + TURN, len(text))
                new, soon, later = (Stream(s.address, models.image, text[:at] + tokens(f"{what} {at}", n, vocab), 1) for what, n in MORE)
                new.run()
                soon.run()
                time.sleep(PAUSE)
                later.run()
                mine.append({
                    "tokens": at, "cached": new.cached, "new_s": round(new.first, 3), "prefill_tps": round((at - new.cached) / new.first, 1),
                    "soon_s": round(soon.first, 3), "soon_evaluated": len(soon.prompt) - soon.cached,
                    "later_s": round(later.first, 3), "later_evaluated": len(later.prompt) - later.cached,
                })
                print(
                    f"  {shape:7} {at:6} tokens: {new.first:7.2f} s with {at - new.cached} new ones; with one more {soon.first:6.3f} s, "
                    f"after {PAUSE} s {later.first:6.3f} s", flush=True)
    return {"turns": turns, "whole": all(mine and mine[-1]["tokens"] >= bench.args.talk_tokens for mine in turns.values())}


def drafts(bench, _):
    worker = run.Worker(
        "ingot", [bench.args.worker, "-store", bench.models.store, "-image", bench.models.image], {"INGOT_CPU_THREADS": str(bench.args.threads)})
    found = {}
    for n in range(bench.args.rounds):
        for math in ("fast", "exact"):
            answer = worker.ask({"op": "spec", "math": math, "tokens": 128, "drafts": 1, "right": 0.7})
            rates = {key: answer[key]["tokens"] / answer[key]["seconds"] for key in ("plain", "draft")}
            found.setdefault(math, []).append(rates["draft"] / rates["plain"])
            print(
                f"  {math:6} {rates['plain']:7.1f} tokens/s plain, {rates['draft']:7.1f} with drafts, {answer['accepted']} of {answer['drafted']} accepted: "
                f"{found[math][-1]:.2f}", flush=True)
    worker.close()
    return {"over_plain": {math: round(statistics.median(ratios), 3) for math, ratios in found.items()}, "whole": True}


PARTS = {"gap": gap, "first": first, "memory": memory, "drafts": drafts, "talk": talk}
