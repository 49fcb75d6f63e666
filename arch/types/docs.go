package types

// nextDraftDoc describes the draft of models whose multi-token prediction head is the layer after the last.
const nextDraftDoc = "its own multi-token prediction head (the layer after the last)"

// equals links the class of transformers that a type equals whose own class is beside its checkpoints.
func equals(modelType string) string {
	const code = "https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/models/"
	return "[transformers' " + modelType + "](" + code + modelType + "/modeling_" + modelType + ".py)"
}
