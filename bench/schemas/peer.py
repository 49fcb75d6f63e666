"""Does the work of `schemas -export FILE` with llguidance, on one thread, and prints the times of both.

    peer.py FILE RESULTS

Compared are the schemas that both compile: the time from the schema's text to the first mask, and for each further
token of the instances the time of its mask and of accepting it. Times are of the thread's processor time. RESULTS is
the JSON file to write.
"""

import base64
import json
import sys
import time

import llguidance
import numpy
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper


class Vocabulary:
    """Tokens by id. The last one, without bytes, ends a text."""

    def __init__(self, tokens):
        self.tokens = [t or b"<end>" for t in tokens]
        self.eos_token_id = len(tokens) - 1
        self.bos_token_id = None
        self.special_token_ids = [self.eos_token_id]
        self.ids = {t: i for i, t in enumerate(tokens) if t}
        self.longest = max(len(t) for t in tokens)
        self.ns = 0  # in __call__, which is not llguidance's time

    def __call__(self, text):
        began = time.thread_time_ns()
        text = text.encode() if isinstance(text, str) else bytes(text)
        out = []
        while text:
            n = next(n for n in range(min(self.longest, len(text)), 0, -1) if text[:n] in self.ids)
            out.append(self.ids[text[:n]])
            text = text[n:]
        self.ns += time.thread_time_ns() - began
        return out


def percentiles(times):
    at = numpy.percentile(numpy.array(times) / 1000, [50, 99, 100])
    return {"p50_us": round(at[0], 2), "p99_us": round(at[1], 2), "max_us": round(at[2], 2), "n": len(times)}


def run(tokenizer, vocabulary, case, mask):
    def now():
        return time.thread_time_ns() - vocabulary.ns

    text = json.dumps(case["schema"])
    began = now()
    grammar = LLMatcher.grammar_from_json_schema(text)
    first, tokens = None, []
    for ids in case["instances"]:
        matcher = LLMatcher(tokenizer, grammar)
        if matcher.is_error():
            return None, tokens
        for k, token in enumerate(ids):
            if first is not None:
                began = now()
            matcher.unsafe_compute_mask_ptr(mask.ctypes.data, mask.nbytes)
            took = now() - began
            allowed = mask[token // 32] >> (token % 32) & 1
            if first is None:
                first = took
                if not allowed or not matcher.consume_token(token):
                    break
                continue
            began = now()
            accepted = allowed and matcher.consume_token(token)
            tokens.append(took + now() - began)
            if not accepted:
                break
    return first, tokens


def main():
    ours_first, ours, peer_first, peer = [], [], [], []
    schemas = refused = 0
    with open(sys.argv[1]) as lines:
        tokens = [base64.b64decode(t) if t else b"" for t in json.loads(next(lines))["tokens"]]
        vocabulary = Vocabulary(tokens)
        tokenizer = LLTokenizer(TokenizerWrapper(vocabulary), n_vocab=len(tokens),
                                slices=LLTokenizer.json_slices())
        mask = numpy.zeros((len(tokens) + 31) // 32, dtype=numpy.uint32)
        for line in lines:
            case = json.loads(line)
            first, times = run(tokenizer, vocabulary, case, mask)
            if first is None:
                refused += 1
                continue
            schemas += 1
            ours_first.append(case["first_ns"])
            peer_first.append(first)
            ours += case["token_ns"] or []
            peer += times
    results = {
        "schemas": schemas,
        "refused_by_peer": refused,
        "peer": "llguidance " + llguidance.__version__,
        "first_mask": {"ingot": percentiles(ours_first), "peer": percentiles(peer_first)},
        "token": {"ingot": percentiles(ours), "peer": percentiles(peer)},
    }
    text = json.dumps(results, indent=2)
    print(text)
    with open(sys.argv[2], "w") as out:
        out.write(text + "\n")


if __name__ == "__main__":
    main()
