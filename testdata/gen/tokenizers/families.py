"""Trains small tokenizers of further published families and writes what the reference returns for texts with them.

Writes testdata/tokenizers: pieces.json, a folder for each family, and digests.json, which has digests of these families
and of those that trained.py makes.
"""

import base64
import io
import json
import pathlib

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as pb
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import build
import charsmap
import store
import texts
import trained
from material import corpus
from store import REPO, write

DATA = REPO / "testdata" / "tokenizers"

# A small charsmap: NFKC and lower case of some characters, composition, removal, and white space.
CHARSMAP = {chr(c): chr(c - 0xFEE0) for c in range(0xFF01, 0xFF5F)}
CHARSMAP |= {"e\u0301": "é", "a\u0308": "ä", "ｱﾞ": "", "\u30ab\u3099": "ガ", "ﬁ": "fi", "\ufb03": "ffi", "Ⅷ": "VIII", "㍿": "株式会社", "½": "1\u20442", "²": "2",
             "\u00a0": " ", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ", "\u2028": " ", "\u200b": "", "\u00ad": "", "\ufeff": "", "…": "...", "ǆ": "dž", "\u00a9": "(c)",
             "\u0958": "\u0915\u093c", "q": "q"}


def spm(kind, **options):
    """Trains a SentencePiece model and returns its protobuf."""
    out = io.BytesIO()
    tsv = DATA / "rules.tsv"
    defaults = dict(vocab_size=900, model_type=kind, character_coverage=0.999, num_threads=1, minloglevel=2, normalization_rule_name="identity", hard_vocab_limit=False)
    if options.pop("charsmap", False):
        tsv.write_text("".join("%s\t%s\n" % (" ".join("%X" % ord(c) for c in k), " ".join("%X" % ord(c) for c in v)) for k, v in CHARSMAP.items() if k != v))
        defaults.update(normalization_rule_tsv=str(tsv))
        del defaults["normalization_rule_name"]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus()), model_writer=out, **{**defaults, **options})
    tsv.unlink(missing_ok=True)
    m = pb.ModelProto()
    m.ParseFromString(out.getvalue())
    m.trainer_spec.input.clear()
    m.trainer_spec.model_prefix = ""
    return m


def merges(m):
    """Returns the merges of a SentencePiece BPE, as transformers derives them from the scores."""
    vocab = {p.piece: i for i, p in enumerate(m.pieces)}
    out = []
    for i, p in enumerate(m.pieces):
        if p.type != 1:
            continue
        for at in range(1, len(p.piece)):
            a, b = p.piece[:at], p.piece[at:]
            if a in vocab and b in vocab:
                out.append((i, vocab[a], vocab[b], a, b))
    return vocab, [[a, b] for _, _, _, a, b in sorted(out)]


def file(model, **parts):
    return build.tokenizer(model, **parts)


def bpe(m, **options):
    vocab, pairs = merges(m)
    return {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": True,
            "byte_fallback": True, "ignore_merges": False, "vocab": vocab, "merges": pairs, **options}


def seq(kind, key, *parts):
    return {"type": kind, key: list(parts)}


REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
UNREPLACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
FALLBACK, FUSE = {"type": "ByteFallback"}, {"type": "Fuse"}


def special_tokens(m, *more, **flags):
    ids = {p.piece: i for i, p in enumerate(m.pieces)}
    return [build.added(ids[p.piece], p.piece, special=True, **flags) for p in m.pieces if p.type in (2, 3)] + [
        build.added(len(m.pieces) + i, s, special=True) for i, s in enumerate(more)]


def make_llama2():
    m = spm("bpe", byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True, remove_extra_whitespaces=False)
    j = file(bpe(m), added_tokens=special_tokens(m, "[INST]", "[/INST]"), normalizer=seq("Sequence", "normalizers", {"type": "Prepend", "prepend": "▁"}, REPLACE),
             post_processor=build.template("<s>", "$A", special=[("<s>", [1])]),
             decoder=seq("Sequence", "decoders", UNREPLACE, FALLBACK, FUSE, {"type": "Strip", "content": " ", "start": 1, "stop": 0}))
    return j, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True, "add_eos_token": False, "legacy": False}


def make_llama2_metaspace():
    """The same model as transformers 5 writes it."""
    m = spm("bpe", byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True, remove_extra_whitespaces=False)
    j = file(bpe(m), added_tokens=special_tokens(m, normalized=True), pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
             post_processor=build.template("<s>", "$A", special=[("<s>", [1])]),
             decoder=seq("Sequence", "decoders", UNREPLACE, FALLBACK, FUSE, {"type": "Strip", "content": " ", "start": 1, "stop": 0}))
    return j, {"bos_token": "<s>", "eos_token": "</s>"}


def make_gemma():
    m = spm("bpe", byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True, remove_extra_whitespaces=False, add_dummy_prefix=False,
            pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", bos_piece="<bos>", eos_piece="<eos>",
            user_defined_symbols=["<start_of_turn>", "<end_of_turn>", "\n", "\n\n", "▁▁", "▁▁▁▁", "<table>"])
    extra = [build.added(i, p.piece) for i, p in enumerate(m.pieces) if p.type == 4 and p.piece[0] == "<"]
    j = file(bpe(m), added_tokens=special_tokens(m) + extra, normalizer=REPLACE,
             pre_tokenizer={"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
             post_processor=build.template("<bos>", "$A", special=[("<bos>", [2])]), decoder=seq("Sequence", "decoders", UNREPLACE, FALLBACK, FUSE))
    return j, {"bos_token": "<bos>", "eos_token": "<eos>", "add_bos_token": True}


def unigram(m, **options):
    return {"type": "Unigram", "unk_id": m.trainer_spec.unk_id, "byte_fallback": False, "vocab": [[p.piece, p.score] for p in m.pieces], **options}


def make_t5():
    m = spm("unigram", charsmap=True, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    blob = base64.b64encode(charsmap.build(CHARSMAP)).decode()
    j = file(unigram(m), added_tokens=special_tokens(m, "<extra_id_1>", "<extra_id_0>"), normalizer={"type": "Precompiled", "precompiled_charsmap": blob},
             pre_tokenizer=seq("Sequence", "pretokenizers", {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}),
             post_processor=build.template("$A", "</s>", special=[("</s>", [1])]), decoder={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True})
    return j, {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def make_unigram():
    """A Unigram without pre-tokenizer, with byte fallback."""
    m = spm("unigram", byte_fallback=True, remove_extra_whitespaces=False)
    j = file(unigram(m, byte_fallback=True), added_tokens=special_tokens(m),
             normalizer=seq("Sequence", "normalizers", {"type": "Nmt"}, {"type": "NFKC"}, {"type": "Strip", "strip_left": False, "strip_right": True},
                            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}),
             pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
             decoder=seq("Sequence", "decoders", FALLBACK, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}))
    return j, {"bos_token": "<s>", "eos_token": "</s>"}


def train_bert():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=700, special_tokens=special, show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
    return t.to_str()


def make_bert():
    """Returns the committed tokenizer if there is one: the WordPiece trainer orders tokens at random."""
    path = DATA / "bert" / "tokenizer.json"
    j = json.loads(path.read_text(encoding="utf-8") if path.exists() else train_bert())
    return j, {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "pad_token": "[PAD]", "mask_token": "[MASK]"}


TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def make_tekken():
    t = trained.train(pre_tokenizers.Sequence([trained.split(TEKKEN), trained.byte_level()]), 420, ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]"])
    t.post_processor = trained.bos_template(t, "<s>")
    j = json.loads(t.to_str())
    j["model"]["ignore_merges"] = True
    return j, {"bos_token": "<s>", "eos_token": "</s>"}


def make_glm4():
    t = trained.train(pre_tokenizers.Sequence([trained.split(trained.LLAMA3), trained.byte_level()]), 420)
    t.add_special_tokens(["<|endoftext|>", "[MASK]", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"])
    t.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="[gMASK] <sop> $A", pair="[gMASK] <sop> $A $B", special_tokens=[(s, t.token_to_id(s)) for s in ("[gMASK]", "<sop>")])])
    return json.loads(t.to_str()), {"eos_token": "<|endoftext|>", "bos_token": None}


def make_nemotron():
    t = trained.train(pre_tokenizers.Sequence([trained.split(TEKKEN), trained.byte_level()]), 400)
    t.add_special_tokens(["<unk>", "<s>", "</s>", "<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>"])
    t.add_tokens([AddedToken("<tool_call>", normalized=True), AddedToken("</tool_call>", normalized=True)])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), trained.bos_template(t, "<s>")])
    return json.loads(t.to_str()), {"bos_token": "<s>", "eos_token": "<SPECIAL_12>"}


FAMILIES = {"llama2": make_llama2, "llama2-metaspace": make_llama2_metaspace, "gemma": make_gemma, "t5": make_t5, "unigram": make_unigram, "bert": make_bert,
            "tekken": make_tekken, "glm4": make_glm4, "nemotron": make_nemotron}


def write_families():
    DATA.mkdir(exist_ok=True)
    texts.write_pieces(DATA / "pieces.json")
    for seed, (name, make) in enumerate(FAMILIES.items()):
        j, config = make()
        t = Tokenizer.from_str(json.dumps(j))
        write(DATA / name / "tokenizer.json", j)
        write(DATA / name / "tokenizer_config.json", config)
        write(DATA / name / "golden.json", trained.golden(t, 500 + seed, 20))


def digest_all():
    out = {}
    for path in sorted([*(store.DATA / n for n in trained.TRAINED), *(DATA / n for n in FAMILIES)]):
        t = Tokenizer.from_file(str(path / "tokenizer.json"))
        specials = [a.content for _, a in sorted(t.get_added_tokens_decoder().items())]
        size = t.get_vocab_size() + 8
        out[path.name] = texts.digests(lambda s, special: t.encode(s, add_special_tokens=special).ids,
                                       lambda ids, skip: t.decode(ids, skip_special_tokens=skip), specials, size)
        print(path.name, out[path.name][:3])
    write(DATA / "digests.json", out)


def main():
    write_families()
    digest_all()


if __name__ == "__main__":
    main()
