// Package checkpoint presents GGUF files as a checkpoint: config.json, the tokenizer's files, and weights under the
// names that a checkpoint of safetensors has, with the changes of llama.cpp's converter undone.
//
// The mappings are data in package arch. This package applies them.
//
// Contract:
//   - Opening reads headers, and of the data only small tensors that determine the configuration, and samples.
//   - Codes that a format of package quantize holds exactly are never requantized.
//   - Everything is read with positioned reads of the files, so any [io.ReaderAt] serves.
package checkpoint
