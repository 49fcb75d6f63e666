// Package mlx is the binding to the MLX array engine: arrays, operations on them, and the one thread that runs them.
//
// # Contract
//
// [Open] loads the engine that package engine found or built, once per process, and starts the engine's thread. All
// work happens in functions handed to [Thread.Do]; arrays and operations must not be touched elsewhere. Inside Do an
// operation that fails panics with *[Error], and Do returns it: a failed operation ends the caller's work, never the
// process. Operations are lazy: they build a graph, which [Eval], [AsyncEval] or reading an array's elements computes.
//
// Arrays live in scopes. Do opens one and [Thread.Scope] opens another inside it; at its end a scope frees the arrays
// made in it, except those given to [Keep], which the caller owns until [Free].
//
// The operations are generated from bridge/ops.txt (go generate); shapes are []int, an axis may be negative.
// Where the program was built without cgo, or for a system without dlopen, Open gives [ErrNoCgo].
package mlx

//go:generate go run ./internal/opgen .
