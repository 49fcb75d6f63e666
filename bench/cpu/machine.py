"""What a measurement needs of the machine: its cores, its name, its peaks program, and who else was running."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


def cores():
    """Physical cores that this process may run on."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    siblings = {read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in os.sched_getaffinity(0)}
    return len(siblings)


def describe():
    info = dict(line.split(":", 1) for line in read("/proc/cpuinfo").splitlines() if ":" in line)
    info = {key.strip(): value.strip() for key, value in info.items()}
    memory = next((int(line.split()[1]) for line in read("/proc/meminfo").splitlines() if line.startswith("MemTotal")), 0)
    return {
        "processor": info.get("model name") or platform.processor() or platform.machine(),
        "family": " ".join(f"{key} {info[key]}" for key in ("cpu family", "model") if key in info),
        "cores": cores(), "memory_gib": round(memory / (1 << 20), 1), "virtual": "hypervisor" in info.get("flags", "").split(),
        "system": platform.system(),
    }


def compile_peaks(source, folder):
    """Compiles peaks.cc for this processor, once, and gives the program's path."""
    contents = b""
    for path in source, os.path.join(os.path.dirname(source), "machine.h"):
        with open(path, "rb") as f:
            contents += f.read()
    key = hashlib.sha256(contents + str(describe()).encode()).hexdigest()[:12]
    target = os.path.join(folder, f"peaks-{key}")
    if not os.path.exists(target):
        compiler = os.environ.get("CXX") or next((c for c in ("c++", "g++", "clang++") if shutil.which(c)), None)
        if not compiler:
            sys.exit("no C++ compiler: install g++ or clang++, or set CXX")
        part = target + ".part"
        done = subprocess.run([*compiler.split(), "-std=c++20", "-O3", "-march=native", "-pthread", "-o", part, source])
        if done.returncode:
            sys.exit(f"{compiler} does not compile {source}")
        os.rename(part, target)
    return target


class Others:
    """The share of the machine's processor time that others than a process took while the block ran; what a virtual
    machine's host took is among it. 0 where the system does not say."""

    def __init__(self, pid):
        self.pid, self.share = pid, 0.0

    def __enter__(self):
        self.begun = self.now()
        return self

    def __exit__(self, *_):
        spans = [b - a for a, b in zip(self.begun, self.now())]
        if spans[0] > 0:
            self.share = max(0.0, (spans[1] - spans[2]) / spans[0])

    def now(self):
        """Processor time that there was, that was used by anybody, and by the process and the children that it has
        waited for, in ticks: proc_pid_stat(5)."""
        line = read("/proc/stat").split("\n")[0].split()[1:9]
        mine = read(f"/proc/{self.pid}/stat").rpartition(")")[2].split()
        if len(line) < 8 or len(mine) < 15:
            return time.monotonic() * 100 * (os.cpu_count() or 1), 0, 0
        ticks = [int(v) for v in line]
        return sum(ticks), sum(ticks) - ticks[3] - ticks[4], sum(int(v) for v in mine[11:15])
