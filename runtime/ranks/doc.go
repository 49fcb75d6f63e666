// Package ranks runs a model that is divided over ranks: one of them leads, the others follow.
//
// The leader, rank 0, has the requests, the scheduler, the samplers and the APIs. What it does to the state of
// sequences, prompts and drafts it also writes to a log of commands. The followers read the log and do the same with
// their parts of the weights and of the state. The log alone makes the ranks agree. They compare checksums of their
// state while they run; a difference ends the group with an error that says where it is.
//
// A [Leader] sends the log over control connections, one to each follower, whose end is [Follow]. A control
// connection carries frames, see wire.go; it must be authenticated before it is handed to this package. Tensors go
// over an mlx.Group. Between steps the followers wait for the next command, not in an operation of the group.
//
// A group that has failed stays failed: a connection that ends or is silent, an operation of the group that fails or
// takes too long, and ranks that disagree end it on all ranks. Errors match [runtime.ErrRanks].
package ranks
