"""The serving benchmark: serve.py INGOT WORKER [--minutes 75] [--rounds 3] [--cells "512x32 ..."] [--parts "cells gap ..."]. `make bench-serve` runs it.

Times ingot beside llama-server, on the same 4-bit codes of the same model, with clients that start together; see CELLS. Each
measurement starts a server, sends prompts that it has not seen, and then the same again. The servers take turns, in
another order each round. llama-server has a slot for each client; with flash attention or without is tried in the first
round, and what is faster is measured in the others.

Every measurement is appended to bench/results/serve-cells.jsonl as soon as it is there. A call ends before the time is
over and the next one goes on; another program starts over. bench/results/serve.json has the medians of the rounds. What
parts.py measures comes after the cells and goes to bench/results/serve-parts.json.
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time

import machine
import parts
import run
from client import TOKENS, Failed, prompts, summary, together
from models import Models
from servers import Ingot, Llama, digest, llama_program

ROWS = os.path.join(run.RESULTS, "serve-cells.jsonl")
RESULT = os.path.join(run.RESULTS, "serve.json")
SHAPE = "dense"


@dataclasses.dataclass(frozen=True)
class Cell:
    """Clients that send a prompt each: a number of tokens, after a number that all share."""

    prompt: int
    clients: int
    shared: int = 0

    @property
    def name(self):
        return f"{f'{self.shared}+' if self.shared else ''}{self.prompt}x{self.clients}"


# Short ones first, because a call may end after any of them.
CELLS = [
    Cell(16, 1), Cell(512, 1), Cell(16, 32), Cell(512, 4), Cell(512, 8), Cell(4096, 1), Cell(512, 32), Cell(128, 8, 2000), Cell(4096, 4),
    Cell(128, 32, 2000),
]
KINDS = [("ingot", "exact"), ("ingot", "fast"), ("llama", None)]
MEASURED = ("tps", "ttft_p50", "ttft_p99", "itl_p50", "itl_p99")


class Bench:
    def __init__(self, args):
        self.args, self.models = args, Models(SHAPE, args.ingot)
        self.gguf = self.models.gguf()
        self.programs = {"ingot": args.ingot, "llama": llama_program()}
        self.digests = {name: digest(path) for name, path in self.programs.items()}
        self.end = time.monotonic() + 60 * args.minutes
        self.log = os.path.join(self.models.folder, "servers.log")
        self.took = {}  # seconds of a measurement, by cell and kind
        self.rows = self.earlier()

    def earlier(self):
        rows = []
        if os.path.exists(ROWS):
            with open(ROWS) as f:
                rows = [json.loads(line) for line in f]
        rows = [r for r in rows if r["machine"] == machine.describe() and r["threads"] == self.args.threads and r["program"] == self.digests[r["server"]]]
        for r in rows:
            self.took[r["cell"], r["server"], r["arithmetic"]] = r["took"]
        return rows

    def left(self, needed=0):
        """Whether there are needed seconds left."""
        return time.monotonic() + needed < self.end

    def ingot(self, arithmetic, program=None, options=()):
        return Ingot(program or self.args.ingot, self.models.store, self.models.image, self.args.threads, self.log, arithmetic, options)

    def llama(self, cell, flash):
        # A few more positions than tokens, in the steps that it rounds to.
        context = -(-(cell.shared + cell.prompt + TOKENS + 8) // 256) * 256
        return Llama(self.programs["llama"], self.gguf, self.args.threads, self.log, cell.clients, context, flash)

    def flashes(self, cell):
        """With which flash attention llama-server is measured: both, until there is a round."""
        tps = {r["flash"]: r["tps"] for r in self.rows if r["cell"] == cell.name and r["server"] == "llama" and r["round"] == 1 and not r["seen"]}
        return [max(tps, key=tps.get)] if len(tps) == 2 else [True, False]

    def done(self, n, cell, server, arithmetic, flash):
        return any(
            (r["round"], r["cell"], r["server"], r["arithmetic"], r["flash"]) == (n, cell.name, server, arithmetic, flash) for r in self.rows)

    def measure(self, n, cell, server, arithmetic, flash):
        begun = time.monotonic()
        asked = prompts(f"{cell.name} {n}", cell.clients, cell.prompt, cell.shared)
        found = []
        with self.ingot(arithmetic) if server == "ingot" else self.llama(cell, flash) as s:
            for seen in (False, True):
                streams = [s.stream(p) for p in asked]
                with machine.Others(s.processes()[-1]) as others:
                    seconds = together(streams)
                found.append({"seen": seen, **summary(streams, seconds), "others": round(others.share, 3)})
        took = round(time.monotonic() - begun, 1)
        name = f"{server} {arithmetic or ('flash' if flash else 'no flash')}"
        for values in found:
            row = {
                "cell": cell.name, "round": n, "server": server, "arithmetic": arithmetic, "flash": flash, **values, "took": took,
                "program": self.digests[server], "threads": self.args.threads, "machine": machine.describe(),
            }
            self.rows.append(row)
            with open(ROWS, "a") as f:
                f.write(json.dumps(row) + "\n")
            print(
                f"  {cell.name:12} {'seen' if values['seen'] else 'new':4} {name:15} {values['tps']:7.1f} tokens/s, first token "
                f"{values['ttft_p50']:6.2f} s (p99 {values['ttft_p99']:6.2f}), gaps {values['itl_p50']:5.3f} s (p99 {values['itl_p99']:5.3f}), "
                f"others {values['others']:4.0%}", flush=True)
        self.took[cell.name, server, arithmetic] = took

    def round(self, n):
        """One round of all cells. False if there was no time for one of them."""
        whole = True
        for cell in self.args.cells:
            for server, arithmetic in KINDS[:: 1 if n % 2 else -1]:
                for flash in self.flashes(cell) if server == "llama" else [None]:
                    if self.done(n, cell, server, arithmetic, flash):
                        continue
                    if not self.left(self.took.get((cell.name, server, arithmetic), 0)):
                        whole = False
                        continue
                    self.measure(n, cell, server, arithmetic, flash)
                    self.write()
        return whole

    def write(self):
        """The medians of all rounds."""
        out = []
        for cell in CELLS:
            best = self.flashes(cell)
            for seen in (False, True):
                for server, arithmetic in KINDS:
                    rows = [
                        r for r in self.rows if (r["cell"], r["seen"], r["server"], r["arithmetic"]) == (cell.name, seen, server, arithmetic)
                        and (server != "llama" or r["flash"] in best)
                    ]
                    if rows:
                        out.append({
                            "clients": cell.clients, "prompt": cell.prompt, "shared": cell.shared, "seen": seen, "server": server, "arithmetic": arithmetic,
                            **{key: round(statistics.median(r[key] for r in rows), 4) for key in MEASURED},
                        })
        with open(RESULT, "w") as f:
            f.write("[\n " + ",\n ".join(json.dumps(row) for row in out) + "\n]\n")
        return out


def report(rows):
    """How ingot's medians compare with llama-server's."""
    of = {(r["shared"], r["prompt"], r["clients"], r["seen"], r["server"], r["arithmetic"]): r for r in rows}
    print(f"{'':18} {'':5} tokens/s: times of llama-server; first token: p50 and p99, over its")
    for (shared, prompt, clients, seen, server, arithmetic), ours in of.items():
        theirs = of.get((shared, prompt, clients, seen, "llama", None))
        if server == "ingot" and theirs:
            print(
                f"{Cell(prompt, clients, shared).name:12} {'seen' if seen else 'new':4} {arithmetic:5} {ours['tps'] / theirs['tps']:5.2f} "
                f"{ours['ttft_p50'] / theirs['ttft_p50']:5.2f} {ours['ttft_p99'] / theirs['ttft_p99']:5.2f}   {ours['tps']:6.1f} and {theirs['tps']:6.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ingot")
    parser.add_argument("worker", help="bench/cpu, built")
    parser.add_argument("--minutes", type=float, default=75, help="how long this call may take")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cells", default="", help=f"only some of {', '.join(c.name for c in CELLS)}")
    parser.add_argument("--parts", default=" ".join(["cells", *parts.PARTS]), help="only some of %(default)s")
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument("--before", help="an older ingot, whose first tokens are compared (part first)")
    parser.add_argument("--talk-tokens", type=int, default=60000, help="length of the conversations (part talk)")
    args = parser.parse_args()
    args.ingot, args.worker = os.path.abspath(args.ingot), os.path.abspath(args.worker)
    names = args.cells.replace(",", " ").split()
    args.cells = [c for c in CELLS if not names or c.name in names]
    chosen = args.parts.replace(",", " ").split()
    if unknown := set(names) - {c.name for c in CELLS} | set(chosen) - {"cells", *parts.PARTS}:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}")
    os.makedirs(run.RESULTS, exist_ok=True)
    bench = Bench(args)
    try:
        whole = all([bench.round(n) for n in range(1, args.rounds + 1)]) if "cells" in chosen else True
        report(bench.write())
        for name in chosen:
            if name != "cells":
                whole = parts.measure(bench, name) and whole
    except Failed as failed:
        sys.exit(str(failed))
    print("all is measured" if whole else "the time is over: call it again to go on", flush=True)


if __name__ == "__main__":
    main()
