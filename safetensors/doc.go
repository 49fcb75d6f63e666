// Package safetensors reads and writes safetensors files and the checkpoints that are made of them.
//
// A file is an 8 byte little-endian length, a JSON header of that length, and
// the data region, to which the header's offsets are relative. Data is in row-major
// order and little-endian. Format: https://github.com/huggingface/safetensors#format
// (the reference is version 0.8 of that library).
//
// Contract:
//   - A header that ReadHeader accepts describes its file exactly: known types, sizes that follow from
//     type and shape, no overlap, no hole, no byte outside the file and none after the last tensor.
//     Nothing is allocated for a length that has not been checked against the file's size.
//   - Where JSON readers differ (duplicate keys, lone surrogates, numbers that are not plain integers) the
//     header is refused, so that no two programs see different tensors in one file.
//   - Files are read with positioned reads, never mapped: a source that shrinks while it is read is an
//     error that names the file and the tensor.
//   - Equal arguments give equal bytes from EncodeHeader and Write.
//   - Every error is one line and wraps one of the Err values of this package, or the
//     system's error.
package safetensors
