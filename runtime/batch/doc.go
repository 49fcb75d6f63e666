// Package batch runs the requests of a loaded model in batches: each step is one forward pass over the next tokens of
// all running requests.
//
// An [Engine] is a [runtime.Engine] in this process. Its parts, each in a file of its own:
//   - queue: requests that wait, shared with the callers
//   - batcher: admits, preempts and ends requests, and runs steps until none is left
//   - order: who goes first; predict: when a new request would have its first token
//   - plan, prefill, gap: which rows a step evaluates
//   - sharing: prompts that begin alike evaluate that part once
//   - drafting: how many tokens each request drafts
//   - stepper: evaluates a plan on the engine's thread; score computes the log-probabilities of prompts
//   - generation: one running request; emit sends its tokens, state frees and restarts it
//   - parked: the state of the last request, which the next one may continue
//   - memory, prefix: what the state of requests may take, and the prefix cache that keeps it
//
// Callers own nothing of the engine's memory: a request's arrays are freed, or parked for the next one, before Generate
// returns.
package batch
