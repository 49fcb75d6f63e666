// Package gguf reads and writes the container of llama.cpp's models: metadata, descriptions of tensors, and their data.
//
// Contract:
//   - A header that Read accepts describes its file exactly: types are known, names are unique, tensors are aligned,
//     whole rows of blocks, inside the file, and do not overlap.
//   - No memory is allocated for a count or a length before it is checked against the file's size and the limits.
//   - Files are read with positioned reads and never memory-mapped.
//   - Every error is a single line and wraps [ErrFormat], or is one of the reader.
//
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian.
package gguf
