// Package tokenizer turns text into the token ids of a model and ids back into text, as the model's tokenizer.json says, or
// its tokenizer.model where it has no other file.
//
// The reference is the Rust package tokenizers 0.23.3 as transformers 5.23 uses it: equal text gives equal ids, equal
// ids give equal text. Format: https://huggingface.co/docs/tokenizers (the file's serde definitions are the specification).
//
// Contract:
//   - Load takes the bytes of tokenizer.json and, where there is one, of tokenizer_config.json. What it does not
//     implement it refuses, naming the component and its type; nothing is ignored that would change an id. Truncation and
//     padding in tokenizer.json are ignored, as transformers does unless asked.
//   - Whether BOS and EOS are added is the post-processor's decision alone: beside a tokenizer.json, add_bos_token and
//     add_eos_token have no effect in the reference. A bos_token that is null means that BOS reports none.
//   - Decode applies the decoder and, for models other than BPE, clean_up_tokenization_spaces: for BPE the reference ignores it.
//   - LoadSentencePiece takes the bytes of a tokenizer.model instead: BPE and Unigram, with the ids and texts of the package
//     sentencepiece 0.2.3.
//   - A Stream gives whole characters and never takes text back; what a decoder cannot be sure of comes later. Runs of byte
//     tokens under ByteFallback come when they end, since one bad byte spoils all of them in the reference.
//   - Go strings that are not UTF-8 read as Python's bytes.decode("utf-8", "replace") reads them.
//   - A Tokenizer is immutable and safe for concurrent use; a Stream belongs to one goroutine. The time of Encode is linear
//     in the text up to a logarithm, whatever the text; regular expressions that only the general engine can run
//     have a time limit and then end in ErrTimeout.
//   - Every error is one line and wraps one of the Err values of this package.
package tokenizer
