// Package speed predicts how many tokens per second a model decodes and prefills on this machine, before any of its
// weights is there.
//
// It builds the model from its configuration over made-up weights of the planned types, and times forward passes: the
// model's own code, the same kernels, and the engine with the same options. Whatever makes an operation faster makes
// the prediction faster, and no figure of a machine or a kernel is written down here.
//
//   - All weights are ranges of one file in memory, of some hundred megabytes: larger than caches, and smaller than the
//     model. Codes are random; scales and plain weights are small random numbers, so that routers choose different
//     experts for different tokens and nothing overflows.
//   - Layers with the same tensors, types and state take the same time. A few of each kind are timed, together as many
//     bytes as caches do not hold, and the model's layers are counted. A model whose layers cannot be timed apart, such
//     as one in which they share keys, runs whole.
//   - A context is not prefilled but skipped ([cache.Sequence.Skip]): the time of a step does not depend on the keys.
package speed
