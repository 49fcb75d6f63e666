// Package sample samples tokens from logits on the device, in one pass for all rows of a step, and verifies drafts.
//
// A [Sampler] is the state of one request. [Start] enqueues the sampling of a step, and [Pending.Read] waits for a
// request's part of it. Everything that takes or returns arrays runs on the engine's thread. The tokens of a seeded
// request depend on its seed and its logits only, not on the other rows or on whether a token was drafted.
package sample
