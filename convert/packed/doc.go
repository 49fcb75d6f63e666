// Package packed presents quantized checkpoints of other tools as plain ones.
//
// A [Kind] is one packing, such as GPTQ. It finds its weights by a checkpoint's tensors and configuration together, and
// gives each the name, shape and element type that it has in a plain checkpoint, so that later steps are independent of
// the packing. A [Weight] names the format of package quantize that represents its codes exactly, if there is one. It
// can be read as codes of that format or as float32.
//
// Contract:
//   - No decision depends on a model's name. The result lists what was recognized, and the keys and tensors that
//     revealed it.
//   - Damage (missing scales, groups that do not match, unknown bit widths, a configured path without a tensor) is one
//     error that names the tensor or the key, if headers, configuration and small reads can reveal it.
//   - With [Checkpoint.HeadersOnly], no data is read, and the result lists what it assumes about it.
//   - Codes are never changed. Values are computed from them once, in float32.
package packed
