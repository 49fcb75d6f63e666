// Package ggml decodes the tensor types of ggml, which GGUF files use, and moves their codes to the engine's formats.
//
// A type stores a tensor as consecutive blocks of a fixed number of elements of a row. Decode computes what ggml's
// reference functions compute, in float32 and in the same order, so that no multiply-add is fused. Exact tells which
// format of package quantize represents a type's codes unchanged, and Recode moves the codes there.
//
// Contract:
//   - Decoding is a function of each block alone. Callers may pass any whole number of blocks at a time. Nothing is
//     shared, and only errors allocate.
//   - Every bit pattern of a block decodes to something: NaN and infinities of a damaged scale are for the caller to
//     reject.
//   - Slices of a wrong length are an error, never a panic.
//
// The layouts are those of ggml-common.h and ggml-quants.c (https://github.com/ggml-org/ggml).
package ggml
