"""Times a conversion to int4: convert.py INGOT [--gigabytes N] [--runs N]. bench/convert.sh runs it.

Each figure is the median of the runs, one after the other, of the whole command with its start, on a source that is in
the page cache. ingot syncs what it writes; mlx_lm does not; the copy is timed with its sync. Results go to
bench/results/convert.json, ratios to standard output.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import checkpoint

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENIZER = os.path.join(HERE, "..", "testdata", "models", "demo")


def run(command, env=None):
    """Runs a command; gives wall seconds, processor seconds and peak resident memory in MiB."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, env=env, stdout=output, stderr=subprocess.STDOUT)
        peak, status = 0.0, None
        while status is None:
            peak = max(peak, resident(process.pid))
            pid, code, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                status = code
            else:
                time.sleep(0.01)
        wall = time.monotonic() - begun
        if status != 0:
            output.seek(0)
            sys.exit(f"{' '.join(command)} failed:\n{output.read().decode(errors='replace')}")
    if peak == 0:  # this counts the memory of this process too, before it became the other
        peak = usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return wall, usage.ru_utime + usage.ru_stime, peak


def resident(pid):
    """Peak resident memory so far in MiB, 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return next((int(line.split()[1]) / 1024 for line in f if line.startswith("VmHWM:")), 0.0)
    except OSError:
        return 0.0


def copy(source, target):
    begun = time.monotonic()
    shutil.copyfile(source, target)
    with open(target, "rb+") as f:
        os.fsync(f.fileno())
    return time.monotonic() - begun


def main():
    args = argparse.ArgumentParser()
    args.add_argument("ingot")
    args.add_argument("--gigabytes", type=float, default=2.0)
    args.add_argument("--runs", type=int, default=3)
    args = args.parse_args()
    ingot = os.path.abspath(args.ingot)
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as work:
        source = os.path.join(work, "source")
        checkpoint.main(source, args.gigabytes)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(os.path.join(TOKENIZER, name), source)  # mlx_lm does not convert without one
        weights = os.path.join(source, "model.safetensors")
        os.sync()
        with open(weights, "rb") as f:
            while f.read(1 << 24):
                pass
        times = {"ingot": [], "mlx_lm": [], "copy": []}
        cpu, peak = [], 0.0
        for _ in range(args.runs):
            out = os.path.join(work, "out")
            wall, seconds, memory = run([ingot, "create", "bench", source, "-q", "int4", "--quiet"], env={**os.environ, "INGOT_HOME": out})
            times["ingot"].append(wall)
            cpu.append(seconds)
            peak = max(peak, memory)
            shutil.rmtree(out)
            wall, _, _ = run([sys.executable, "-m", "mlx_lm", "convert", "--hf-path", source, "--mlx-path", out, "-q", "--q-bits", "4", "--q-group-size", "64"],
                             env={**os.environ, "HF_HUB_OFFLINE": "1"})
            times["mlx_lm"].append(wall)
            shutil.rmtree(out)
            times["copy"].append(copy(weights, out))
            os.remove(out)
        size = os.path.getsize(weights)
    result = {
        "source_bytes": size,
        "ingot_s": round(statistics.median(times["ingot"]), 3),
        "mlx_lm_s": round(statistics.median(times["mlx_lm"]), 3),
        "copy_s": round(statistics.median(times["copy"]), 3),
        "peak_mib": round(peak, 1),
    }
    os.makedirs(os.path.join(HERE, "results"), exist_ok=True)
    with open(os.path.join(HERE, "results", "convert.json"), "w") as f:
        json.dump(result, f)
        f.write("\n")
    print(json.dumps(result))
    seconds = statistics.median(cpu)
    print(f"ingot: {result['mlx_lm_s'] / result['ingot_s']:.1f} times as fast as mlx_lm, {result['ingot_s'] / result['copy_s']:.2f} times the copy, "
          f"{size / 1e6 / seconds:.0f} MB/s of source per core ({seconds:.1f} processor seconds), peak {result['peak_mib']} MiB")


if __name__ == "__main__":
    main()
