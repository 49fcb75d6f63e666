// Package types holds the model types, one file each: keys of config.json, tensor table, mappings of GGUF, published
// layouts, exceptions, chat format, and the row in docs/models.md. Each registers itself with package arch; a program
// imports this package for its types to be known.
//
// Large types continue in NAME_table.go, NAME_gguf.go and the like. The tests of packages arch and models/all name what
// a type lacks.
package types

// nextDraftDoc describes the draft of models whose multi-token prediction head is the layer after the last.
const nextDraftDoc = "its own multi-token prediction head (the layer after the last)"

// equals links the class of transformers that a type equals whose own class is beside its checkpoints.
func equals(modelType string) string {
	const code = "https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/models/"
	return "[transformers' " + modelType + "](" + code + modelType + "/modeling_" + modelType + ".py)"
}
