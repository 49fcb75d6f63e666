package shard

// refused are the model types whose blocks do not divide yet, and what keeps them from it.
var refused = map[string]string{
	"qwen4_exp": "indexers and mixed streams read all heads",
}
