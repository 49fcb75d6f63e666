"""Trains small SentencePiece models and writes the package's results for texts:
testdata/tokenizers/sp-*/tokenizer.model and sentencepiece.json.
"""

import random

import sentencepiece

import texts
from families import DATA, spm
from material import FIXED, MALFORMED, random_bytes
from store import write


def trained():
    yield "sp-bpe", spm("bpe", byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True, remove_extra_whitespaces=False,
                        user_defined_symbols=["<table>", "▁▁▁", "\n"])
    yield "sp-bpe-plain", spm("bpe", charsmap=True, split_by_whitespace=False)
    yield "sp-unigram", spm("unigram", charsmap=True, user_defined_symbols=["<extra>", "the"])
    yield "sp-unigram-bytes", spm("unigram", byte_fallback=True, remove_extra_whitespaces=False, split_by_whitespace=False)


def main():
    out = {}
    for name, m in trained():
        (DATA / name).mkdir(exist_ok=True)
        m.normalizer_spec.ClearField("normalization_rule_tsv")  # a local path; the model contains the compiled rules
        (DATA / name / "tokenizer.model").write_bytes(m.SerializeToString())
        write(DATA / name / "tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "bos_token": "<s>", "eos_token": "</s>"})
        sp = sentencepiece.SentencePieceProcessor(model_proto=m.SerializeToString())
        specials = [p.piece for p in m.pieces if p.type == 4]
        encode = lambda s, special: [sp.bos_id()] * special + sp.encode(s)
        rng = random.Random(len(out))
        cases = []
        for data in [x.encode() for x in FIXED] + MALFORMED + [random_bytes(rng, specials) for _ in range(20)]:
            text = data.decode("utf-8", "replace")
            case = {"text": text} if text.encode() == data else {"hex": data.hex()}
            cases.append({**case, "ids": encode(text, False), "special": encode(text, True)})
        ids = [c["ids"] for c in cases if len(c["ids"]) < 60][::3] + [[rng.randrange(sp.get_piece_size()) for _ in range(rng.randint(0, 20))] for _ in range(40)]
        digests = texts.digests(encode, lambda ids, _: sp.decode(ids), specials, sp.get_piece_size())
        out[name] = {"encode": cases, "decode": [{"ids": x, "text": sp.decode(x)} for x in ids], "specials": specials, "digests": digests}
        print(name, (DATA / name / "tokenizer.model").stat().st_size, "bytes", digests[:2])
    write(DATA / "sentencepiece.json", out)


if __name__ == "__main__":
    main()
