// Package quantize converts weights to the number formats of the engine and back, without the engine.
//
// A [Type] names a format. Elements are encoded in groups of [Type.Group] consecutive elements of a row. A tensor
// becomes up to three arrays ([Type.Parts] returns their shapes):
//
//   - packed: U32, the codes as one little-endian bit stream, element 0 in the lowest bits of byte 0. Codes of 3, 5 and
//     6 bits cross byte and word boundaries without padding.
//   - scales: one per group; of the source's type in affine formats, U8 in mxfp4 and mxfp8 (E8M0: a power of two) and
//     in nvfp4 (E4M3).
//   - biases: one per group, affine formats only.
//
// Contract:
//   - A rule ([Type.Rule]) is a version. For every finite source, the codes, scales and biases of affine-1, mxfp4-1,
//     mxfp8-1 and nvfp4-1 equal, byte for byte, the output of quantize in MLX 0.32.4's CPU wheel for x86-64.
//     [Type.Decode] equals its dequantize, [Cast] its astype. This holds on every processor: no multiply-add is fused.
//   - Encoding is a function of each group alone. Callers may pass any whole number of groups at a time, so a tensor
//     can be streamed and split over goroutines. Nothing is shared, and only errors allocate.
//   - NaN and infinities in a source are an [ElementError] with the index. Discard the output in that case.
//   - Slices of a wrong length are an error, never a panic.
//
// [Type.Encode] documents the surprising consequences of the rules.
package quantize
