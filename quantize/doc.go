// Package quantize turns weights into the number formats that the engine computes with, and back, without the engine.
//
// A [Type] names a format. Elements are coded in groups of [Type.Group] consecutive elements of a row; a tensor becomes up to
// three arrays ([Type.Parts] gives their shapes):
//
//   - packed: U32, the codes as one little-endian stream of bits, element 0 in the lowest bits of byte 0. Codes of 3, 5 and
//     6 bits cross byte and word boundaries without padding.
//   - scales: one per group; of the source's type in affine formats, U8 in mxfp4 and mxfp8 (E8M0: a power of two) and in
//     nvfp4 (E4M3).
//   - biases: one per group, affine formats only.
//
// Contract:
//   - A rule ([Type.Rule]) is a version. Codes, scales and biases of affine-1, mxfp4-1, mxfp8-1 and nvfp4-1 equal, byte for byte,
//     what quantize of MLX 0.32.4 gives in its CPU wheel for x86-64, for every finite source; [Type.Decode] equals its
//     dequantize, [Cast] its astype. They do so on every processor: no sum and product is fused here.
//   - Encoding is a function of each group alone. Any whole number of groups may be given at a time, so a tensor may be
//     streamed and split over goroutines; nothing is shared, and nothing is allocated but an error.
//   - NaN and infinities in a source are an [ElementError] that says where. What was written by then is of no use.
//   - Slices of a wrong length are an error, never a panic.
//
// What follows from the rules, and looks wrong at first sight, is written at [Type.Encode].
package quantize
