// Package safetensors reads and writes safetensors files and checkpoints made of them.
//
// A file consists of an 8-byte little-endian length, a JSON header of that length, and the data region. Offsets in the
// header are relative to the data region. Data is row-major and little-endian. Format:
// https://github.com/huggingface/safetensors#format (the reference implementation is version 0.8 of that library).
//
// Contract:
//   - A header that ReadHeader accepts describes its file exactly: the dtypes are known, sizes match dtype and shape,
//     and the tensors cover the data region without overlaps, gaps or trailing bytes. No memory is allocated for a
//     length before it is checked against the file's size.
//   - ReadHeader rejects JSON that parsers interpret differently (duplicate keys, lone surrogates, numbers that are not
//     plain integers), so that all programs see the same tensors in a file.
//   - Files are read with positioned reads and never memory-mapped. If a file shrinks while it is read, the error names
//     the file and the tensor.
//   - EncodeHeader and Write are deterministic.
//   - Every error is a single line and wraps one of this package's Err values or a system error.
package safetensors
