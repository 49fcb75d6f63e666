// Package constraint enforces the format of a request: which tokens may come next, and which ones must.
//
// [Formats] belongs to a model, caches compiled grammars and is safe for concurrent use. A [Constraint] belongs to one
// request and is not. A nil Constraint allows everything. The package does not use the engine: a mask is bits on the
// host, one for each token.
package constraint
