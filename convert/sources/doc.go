// Package sources reads checkpoints that are quantized already, each in its maker's way, as if they were plain ones.
//
// A [Kind] is one such way: it finds its weights among a checkpoint's tensors and its configuration together, and gives each
// the name, the shape and the element type that it has in a plain checkpoint, so that what follows need not know of it. A
// [Weight] says which of our formats holds its codes exactly, if one does, and reads it either way: as codes of that format, or
// as float32.
//
// Contract: nothing is decided by the name of a model. What was recognized is told with the keys and tensors that showed it.
// What is damaged - scales that are absent, a group that does not fit, bits that no format has, a path of the configuration
// that is not there - is one error that names the tensor or the key, wherever headers, configuration and small reads can show
// it. Codes are never changed; what is computed from them is computed in float32, once.
package sources
