package config

import (
	"fmt"
)

// Activation reads the activation function. names are synonyms; the result is the first.
func (o Object) Activation(key string, names ...string) string {
	got := o.String(key, names[0])
	for _, name := range names {
		if got == name {
			return names[0]
		}
	}
	o.Fail(key, fmt.Sprintf("be %q", names[0]))
	return names[0]
}

// Names of activation functions.
var (
	SiLU = []string{"silu", "swish"}
	GELU = []string{"gelu_pytorch_tanh", "gelu_tanh"}
)

// plainActivations are the names of activation functions of plain feed-forward blocks, and their canonical names.
var plainActivations = map[string]string{
	"silu": "silu", "swish": "silu", "gelu": "gelu", "relu": "relu", "relu2": "relu2",
	"gelu_pytorch_tanh": "gelu_pytorch_tanh", "gelu_tanh": "gelu_pytorch_tanh", "gelu_new": "gelu_pytorch_tanh",
	"gelu_fast": "gelu_pytorch_tanh",
}

// PlainActivation reads an activation function and returns its canonical name.
func (o Object) PlainActivation(key, def string) string {
	name, ok := plainActivations[o.String(key, def)]
	if !ok {
		o.Fail(key, `be "gelu", "gelu_pytorch_tanh", "relu", "relu2" or "silu"`)
	}
	return name
}
