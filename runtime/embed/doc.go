// Package embed pools the hidden states of a text into a vector, as sentence-transformers does.
//
// It sums the rows of an input in a [Vector], and runs the inputs of a request with a [Runner], whose caller evaluates
// them. It does not use the engine.
package embed
