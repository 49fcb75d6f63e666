"""Writes tokenizer/testdata/small.json: small tokenizers, each for one rule, and what the reference returns for
texts.
"""

import json

from tokenizers import Tokenizer

from build import ALPHABET, BYTES, added, model, template, tokenizer
from material import decoded, encoded
from store import DATA, write

ABC = ["<unk>", "a", "b", "c", "d", "ab", "bc", "abc", "aa", "aaa", "aaaa", "é", " "]
ABC_MERGES = [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "a"), ("aa", "a"), ("aa", "aa")]


def small_tokenizers():
    texts = ["", "abc", "abcabcabab", "aaaaaaa", "a" * 101, "axyb", "xx", "abx ab", "é", "日本 a", "abécd xyzzy", "a b  c"]
    yield "plain", tokenizer(model(ABC, ABC_MERGES)), texts
    yield "bc before ab", tokenizer(model(ABC, [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc")])), texts
    yield "unk", tokenizer(model(ABC, ABC_MERGES, unk_token="<unk>")), texts
    yield "fuse unk", tokenizer(model(ABC, ABC_MERGES, unk_token="<unk>", fuse_unk=True)), texts
    yield "merged unk", tokenizer(model(ABC + ["<unk>a", "<unk><unk>"], ABC_MERGES + [("<unk>", "a"), ("<unk>", "<unk>")], unk_token="<unk>")), texts
    bytes_ = ["<0x%02X>" % b for b in range(256) if b != 0xE6]
    yield "byte fallback", tokenizer(model(ABC + bytes_, ABC_MERGES, unk_token="<unk>", byte_fallback=True)), texts
    yield "byte fallback, fuse", tokenizer(model(ABC + bytes_, ABC_MERGES, unk_token="<unk>", byte_fallback=True, fuse_unk=True)), texts + ["日x", "日日xé"]
    yield "prefix", tokenizer(model(["a", "b", "##a", "##b", "ab", "##ab", "abab", "<unk>"], [("a", "##b"), ("##a", "##b"), ("ab", "##ab")],
                                    continuing_subword_prefix="##", unk_token="<unk>")), texts
    yield "suffix", tokenizer(model(["a", "b", "a</w>", "b</w>", "ab</w>", "ab", "abab</w>"], [("a", "b</w>"), ("a", "b"), ("ab", "ab</w>")],
                                    end_of_word_suffix="</w>")), texts
    yield "suffix, bytes", tokenizer(model(ALPHABET + ["a</w>", "Ġ</w>", "Ġa</w>"], [("Ġ", "a</w>")], end_of_word_suffix="</w>"), pre_tokenizer=BYTES), texts
    yield "equal merges, the last counts", tokenizer(model(ABC, ABC_MERGES + [("a", "b")])), texts
    yield "ignore merges", tokenizer(model(ABC + ["dab", "日本 a"], ABC_MERGES, ignore_merges=True)), texts + ["dab"]
    yield "holes", tokenizer(model({x: 3 * i for i, x in enumerate(ABC)}, ABC_MERGES), added_tokens=[added(99, "<x>"), added(100, "<y>")]), texts + ["a<x>b<y>"]
    yield "sparse", tokenizer(model({x: 10000000 * i for i, x in enumerate(ABC)}, ABC_MERGES)), texts
    yield "no bytes", tokenizer(model([x for x in ALPHABET if x != "b"]), pre_tokenizer=BYTES), texts
    yield "bytes, unk", tokenizer(model([x for x in ALPHABET if x != "b"] + ["<unk>"], unk_token="<unk>", fuse_unk=True), pre_tokenizer=BYTES), texts + ["abbba"]
    yield "empty token", tokenizer(model({"": 3, "a": 0, "b": 1})), texts
    yield "bytes, then split", tokenizer(model(ALPHABET), pre_tokenizer={"type": "Sequence", "pretokenizers": [
        BYTES, {"type": "Split", "pattern": {"String": "Ġ"}, "behavior": "Removed", "invert": False}]}), texts
    full = model(ALPHABET + ["Ġa", "ab"], [("Ġ", "a"), ("a", "b")])
    words = ["a b", " a", "", "hello ab", "ab  a\n", "x" + "  "]
    for prefix in (False, True):
        for regex in (False, True):
            pre = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": False, "use_regex": regex}
            yield f"ByteLevel {prefix} {regex}", tokenizer(full, pre_tokenizer=pre, decoder=pre, added_tokens=[added(300, "<x>")]), words + ["<x>a<x> a"]
    yield "no decoder", tokenizer(full, pre_tokenizer=BYTES, added_tokens=[added(300, "<x>", special=True)]), words + ["a<x> a"]
    yield "empty decoder", tokenizer(full, pre_tokenizer=BYTES, decoder={"type": "Sequence", "decoders": []}), words
    yield "decoder in a sequence", tokenizer(full, pre_tokenizer=BYTES, decoder={"type": "Sequence", "decoders": [BYTES]}), words
    yield "empty pre-tokenizer", tokenizer(full, pre_tokenizer={"type": "Sequence", "pretokenizers": []}), words
    for each in (False, True):
        yield f"Digits {each}", tokenizer(full, pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": each}, BYTES]},
                                          decoder=BYTES), words + ["a12b3", "٣٤ ½Ⅻ²", "\U00011de0a\U00016ff5"]
    # added tokens
    def with_added(*tokens, **parts):
        return tokenizer(full, **{"pre_tokenizer": BYTES, "decoder": BYTES, "added_tokens": list(tokens), **parts})
    spaces = ["a<x>b", "a <x> b", "a  <x>  b", "<x>", " <x> ", "<x><x>", "<x> <x>", "a<x", "\u3000<x>\u2003\n", "<x>y<x>", "é<x>é", "_<x>-", "\u200d<x>", "Ⓐ<x>",
              "<x>Ⅷ", "a <x>  <y> b", "<x><y>", " <y> <x> <y> "]
    for flags in ({}, {"lstrip": True}, {"rstrip": True}, {"lstrip": True, "rstrip": True}, {"single_word": True}, {"normalized": True}, {"special": True},
                  {"lstrip": True, "rstrip": True, "single_word": True, "normalized": True, "special": True}):
        yield "added " + " ".join(flags), with_added(added(300, "<x>", **flags), added(301, "<y>", special=True, **{k: v for k, v in flags.items() if k != "special"})), spaces
    yield "a space as a token", with_added(added(300, "<x>", rstrip=True), added(301, " "), added(302, "  ")), spaces
    yield "leftmost, then longest", with_added(added(300, "ab"), added(301, "abc"), added(302, "bcde"), added(303, "abcdef")), ["abc", "abcde", "abcdef", "ababcd", "xbcde"]
    yield "longest is no single word", with_added(added(300, "ab"), added(301, "abc", single_word=True)), ["abcd", "abc d", "xabc"]
    yield "added twice", with_added(added(300, "<x>", special=True), added(300, "<x>", lstrip=True)), spaces
    yield "token of the model", with_added(added(7, "ab"), added(8, "a", special=True)), ["abc", "a b", "aab"]
    yield "other ids", with_added(added(900, "<x>"), added(900, "<y>")), spaces
    yield "nothing added", with_added(added(300, "")), ["ab"]
    yield "normalized", with_added(added(300, "É", normalized=True), added(301, "e\u0301", special=True), added(302, "\u1e17", normalized=True, special=True),
                                   normalizer={"type": "NFD"}), ["É", "E\u0301", "é e\u0301", "\u1e17", "e\u0304\u0301x", "aÉb\u00c9"]
    # normalizers
    for n in ({"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "é"},
              {"type": "Replace", "pattern": {"Regex": "[ab]+"}, "content": ""}, {"type": "Prepend", "prepend": "▁"}, {"type": "Sequence", "normalizers": []},
              {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "> "}, {"type": "NFKC"}, {"type": "Replace", "pattern": {"String": "b"}, "content": "cc"}]}):
        yield "normalizer " + json.dumps(n), with_added(added(300, "<x>"), normalizer=n), ["", "a b", "a  b   c<x> b", "ﬁ½ b", "b", "xyz<x><x>"]
    # post-processors
    sp = [("<s>", [5]), ("two", [6, 7])]
    for pieces in (["<s>", "$A"], ["$A", "<s>"], ["<s>", "$A", "two"], ["$A"], ["<s>"], ["$A", "two", "$A"], []):
        yield "template " + " ".join(pieces), with_added(post_processor=template(*pieces, special=sp)), ["", "ab"]
    yield "template in a sequence", with_added(post_processor={"type": "Sequence", "processors": [template("<s>", "$A", special=sp), BYTES]}), ["", "ab"]
    yield "empty post-processor", with_added(post_processor={"type": "Sequence", "processors": []}), ["ab"]


def main():
    out = []
    for name, j, texts in small_tokenizers():
        j = json.loads(json.dumps(j))
        t = Tokenizer.from_str(json.dumps(j))
        cases = [encoded(t, x.encode()) for x in texts]
        seen = sorted({i for c in cases for i in c.get("special", c["ids"])})
        ids = [c.get("special", c["ids"]) for c in cases] + [seen + [299, 298, 300, 301, 302, 303, 304, 1 << 30]]
        out.append({"name": name, "tokenizer": j, "encode": cases, "decode": [decoded(t, x) for x in ids]})
    # The test adds the byte-level alphabet, which would be most of the file.
    for x in out:
        v = x["tokenizer"]["model"]["vocab"]
        if all(v.get(c) == i for i, c in enumerate(ALPHABET)):
            x["alphabet"] = True
            for c in ALPHABET:
                del v[c]
    write(DATA / "small.json", out)


if __name__ == "__main__":
    main()
