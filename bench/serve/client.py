"""Clients of a completions endpoint: streams that start together, and when each of their tokens came."""

import http.client
import json
import random
import threading
import time

TOKENS = 64  # of each response


class Failed(Exception):
    """A request that did not do what was asked of it."""


class Stream:
    """One request. times are those of its pieces of text, in seconds of the monotonic clock."""

    def __init__(self, address, model, prompt, tokens=TOKENS):
        self.address, self.prompt, self.tokens = address, prompt, tokens
        self.body = {
            "model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True, "ignore_eos": True,
            "stream_options": {"include_usage": True},
        }
        self.begun, self.times, self.usage = 0.0, [], None

    def run(self):
        body = json.dumps(self.body)
        connection = http.client.HTTPConnection(self.address, timeout=3600)
        try:
            self.begun = time.monotonic()
            connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                raise Failed(f"status {response.status}: {response.read(300)}")
            for line in response:
                if not line.startswith(b"data: {"):
                    continue
                now, piece = time.monotonic(), json.loads(line[6:])
                if "error" in piece:
                    raise Failed(str(piece["error"]))
                if any(choice.get("text") for choice in piece.get("choices", ())):
                    self.times.append(now)
                self.usage = piece.get("usage") or self.usage
        finally:
            connection.close()
        if not self.times or not self.usage or self.usage["completion_tokens"] != self.tokens or self.usage["prompt_tokens"] != len(self.prompt):
            raise Failed(f"{len(self.prompt)} and {self.tokens} tokens were asked for: {self.usage}, {len(self.times)} pieces of text")

    @property
    def cached(self):
        """Tokens of the prompt that were not evaluated, as far as the server says."""
        return (self.usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)

    @property
    def first(self):
        return self.times[0] - self.begun

    @property
    def gaps(self):
        return [b - a for a, b in zip(self.times, self.times[1:])]


def together(streams):
    """Runs streams at once. The seconds until the last one ends."""
    failed = []

    def run(stream):
        try:
            stream.run()
        except (Failed, OSError, ValueError) as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(s,)) for s in streams]
    begun = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise Failed(f"{len(failed)} of {len(streams)} requests failed, one with: {failed[0]}")
    return time.monotonic() - begun


class Background(threading.Thread):
    """together, beside what the caller does until it waits."""

    def __init__(self, streams):
        super().__init__()
        self.streams, self.failed = streams, None
        self.start()

    def run(self):
        try:
            together(self.streams)
        except Failed as failed:
            self.failed = failed

    def speaking(self, n):
        """Waits until every stream has n pieces of text."""
        while self.is_alive() and not all(len(s.times) >= n for s in self.streams):
            time.sleep(0.05)

    def wait(self):
        self.join()
        if self.failed:
            raise self.failed


def tokens(seed, n, vocab=32000):
    """n random tokens, none of them special."""
    rng = random.Random(seed)
    return [rng.randrange(258, vocab) for _ in range(n)]


def prompts(seed, clients, own, shared):
    """A prompt for each client: a beginning that all share, and an end of its own."""
    begin = tokens(f"{seed} shared", shared)
    return [begin + tokens(f"{seed} {i}", own) for i in range(clients)]


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(int(q * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def summary(streams, seconds):
    """Throughput of all tokens, and quantiles of what the clients waited for, in seconds."""
    first, gaps = [s.first for s in streams], [gap for s in streams for gap in s.gaps]
    return {
        "tps": round(sum(s.tokens for s in streams) / seconds, 2),
        "ttft_p50": round(quantile(first, 0.5), 4), "ttft_p99": round(quantile(first, 0.99), 4),
        "itl_p50": round(quantile(gaps, 0.5), 4), "itl_p99": round(quantile(gaps, 0.99), 4),
        "cached": sum(s.cached for s in streams), "evaluated": sum(len(s.prompt) - s.cached for s in streams),
    }
