"""The servers that are measured: `ingot serve` and llama-server, each a process of its own on a free port."""

import hashlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time

import machine
from client import Failed, Stream, tokens


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()[:12]


class Server:
    """A running server, as a context. Entering it loads the model and generates a few tokens."""

    def __init__(self, model, log):
        self.model, self.log = model, log

    def __enter__(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{s.getsockname()[1]}"
        command, env = self.command()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, env={**os.environ, **env}, stdout=log, stderr=log)
        try:
            self.wait()
            Stream(self.address, self.model, tokens("warm", 16), 4).run()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait(self):
        for _ in range(1200):
            if self.process.poll() is not None:
                break
            try:
                connection = http.client.HTTPConnection(self.address, timeout=5)
                connection.request("GET", self.health)
                status = connection.getresponse().status
                connection.close()
                if status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise Failed(f"{self.name} does not answer: see {self.log}")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def stream(self, prompt, count=None):
        return Stream(self.address, self.model, prompt, *([count] if count else []))

    def processes(self):
        """The process and its children."""
        found = [self.process.pid]
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            found += [int(pid) for pid in machine.read(f"/proc/{self.process.pid}/task/{task}/children").split()]
        return found

    def memory(self):
        """Anonymous memory of all processes in MB."""
        return self.anonymous(self.processes())

    def model_memory(self):
        """Anonymous memory of the process that runs the model, in MB."""
        return self.anonymous(self.processes()[-1:])

    def anonymous(self, processes):
        kb = 0
        for pid in processes:
            for line in machine.read(f"/proc/{pid}/status").splitlines():
                if line.startswith("RssAnon:"):
                    kb += int(line.split()[1])
        return round(kb / 1000)


class Ingot(Server):
    name, health = "ingot", "/healthz"

    def __init__(self, program, store, image, threads, log, arithmetic="exact", options=()):
        super().__init__(image, log)
        self.program, self.store, self.threads, self.arithmetic, self.options = program, store, threads, arithmetic, options

    def command(self):
        command = [self.program, "serve", "--quiet", "--host", self.address, "--keep-alive", "1h", *self.options]
        return command, {"INGOT_HOME": self.store, "INGOT_CPU_THREADS": str(self.threads), "INGOT_CPU_MATH": self.arithmetic}


class Llama(Server):
    """llama-server with a slot for each client, each with its own K/V cache: none waits for another's, and prompts that were
    seen are found in the slots. Its cache of evicted prompts would only add copies, so it is off."""

    name, health = "llama", "/health"

    def __init__(self, program, path, threads, log, slots, context, flash):
        super().__init__(os.path.basename(path), log)
        self.program, self.path, self.threads, self.slots, self.context, self.flash = program, path, threads, slots, context, flash

    def command(self):
        host, port = self.address.split(":")
        return [
            self.program, "-m", self.path, "--host", host, "--port", port, "-t", str(self.threads), "-tb", str(self.threads), "-np", str(self.slots),
            "-c", str(self.slots * self.context), "-fa", "on" if self.flash else "off", "--cache-ram", "0",
        ], {}


def llama_program():
    path = os.path.join(sys.prefix, "bin", "llama-server")
    if not os.path.exists(path):
        sys.exit(f"there is no {path}: run bench/cpu/run.sh --peers-only")
    return path
