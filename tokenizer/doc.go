// Package tokenizer converts text to a model's token ids and back, as defined by the model's tokenizer.json, or by its
// tokenizer.model if it has no tokenizer.json.
//
// The reference is the Rust library tokenizers 0.23.3 as used by transformers 5.23: the same text gives the same ids,
// and the same ids give the same text. Format: https://huggingface.co/docs/tokenizers (the specification is the
// library's serde definitions).
//
// Contract:
//   - Load takes the bytes of tokenizer.json and optionally of tokenizer_config.json. It refuses unsupported components
//     by name and type and ignores nothing that would change an id. It ignores truncation and padding in
//     tokenizer.json, as transformers does by default.
//   - The post-processor alone decides whether BOS and EOS are added. With a tokenizer.json, add_bos_token and
//     add_eos_token have no effect in the reference. If bos_token is null, BOS reports none.
//   - Decode applies the decoder and, unless the model is a BPE, clean_up_tokenization_spaces: the reference ignores
//     that option for BPE.
//   - LoadSentencePiece takes the bytes of a tokenizer.model instead: BPE or Unigram, with the ids and texts of the
//     library sentencepiece 0.2.3.
//   - A Stream returns whole characters and never retracts text; it holds back what the decoder cannot decide yet. With
//     ByteFallback it returns a run of byte tokens when the run ends, because in the reference one invalid byte
//     invalidates the whole run.
//   - Go strings that are not valid UTF-8 are read as Python's bytes.decode("utf-8", "replace") reads them.
//   - A Tokenizer is immutable and safe for concurrent use. A Stream belongs to one goroutine. Encode takes O(n log n)
//     time for every text of n bytes, except that patterns which need the general regular expression engine have a time
//     limit and then return ErrTimeout.
//   - Every error is one line and wraps one of the Err values of this package.
//
// Packages below do the work, one part of the file each: normalize, pretokenize, encode and decode.
// docs/design/tokenizer.md lists them all.
package tokenizer
