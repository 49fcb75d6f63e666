// Package divide plans how ranks compute a model together: as parts of every tensor, or as a pipeline of layers. It has
// the cost model of both, whose predictions are in docs/scaling.md.
//
// A plan follows from the model's configuration, the sizes of its tensors, and what each rank's machine has. It needs
// no engine. Its errors match [shard.ErrRanks] or runtime.ErrMemory.
package divide
