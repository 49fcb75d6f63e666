// Package mlx binds the MLX array engine: arrays, operations on them, and the one thread that runs them.
//
// # Contract
//
// [Open] loads the engine that package engine found or built, once per process, and starts the engine's thread. All
// work runs in functions passed to [Thread.Do]; arrays and operations must not be used anywhere else. Inside Do a
// failed operation panics with *[Error], which Do recovers and returns: the failure ends the caller's work, never the
// process. Operations are lazy: they build a graph. [Eval], [AsyncEval] or reading an array's elements computes it.
//
// Arrays belong to scopes. Do opens one, and [Thread.Scope] opens a nested one. When a scope ends it frees the arrays
// made in it, except those passed to [Keep], which the caller owns until [Free].
//
// The operations are generated from bridge/ops.txt (go generate). Shapes are []int; a negative axis counts from the
// end. In a program built without cgo, or for a system without dlopen, Open returns [ErrNoCgo].
package mlx

//go:generate go run ./internal/opgen .
