// Package blob is the format of the layers that hold a model's tensors: the keys, the metadata and the alignment of a
// blob, and the names and annotations by which a manifest refers to tensors.
//
// A blob is a complete safetensors file with one tensor. An unquantized tensor has one key, its name. A quantized
// tensor NAME has:
//
//	NAME               packed codes
//	NAME.scale         scales of its groups
//	NAME.bias          biases of its groups (affine types)
//	NAME.global_scale  scale of the whole tensor, one F32 (nvfp4; absent if it is 1)
//	quant_type         metadata: the type, without its group size
//	group_size         metadata: elements per group
//	quant_rule         metadata: version of the arithmetic that made the codes; absent if unknown
//
// The data starts at a multiple of 64 bytes, or of 16 KiB if an array has 1 MiB or more, so that it can be mapped
// (package safetensors).
//
// Contract:
//   - A [Layout] and its header are a function of their arguments: blobs are content-addressed.
//   - Reading trusts nothing: [Read] and [Open] parse a header that may come from anywhere, and [Blob.Check] accepts
//     exactly the blobs that a model can run from.
//   - Errors about a blob's contents are a [*FormatError], so that a caller can say what they mean to it.
package blob
