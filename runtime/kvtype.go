package runtime

import (
	"fmt"
	"strings"
)

// KVType is the type of the keys and values in a KV cache. It does not apply to the states of recurrent layers.
type KVType string

// The types. Quantized types have a scale and a bias for each group of 32 channels, which adds one bit per element.
const (
	KVPlain KVType = ""   // the type of the activations
	KVQ8    KVType = "q8" // 8 bits
	KVQ4    KVType = "q4" // 4 bits
)

// ParseKVType parses a type: auto, f16 or bf16 (each means the type of the activations), q8 or q8_0, q4 or q4_0.
func ParseKVType(s string) (KVType, error) {
	switch strings.ToLower(s) {
	case "", "auto", "f16", "fp16", "bf16":
		return KVPlain, nil
	case "q8", "q8_0", "int8", "8":
		return KVQ8, nil
	case "q4", "q4_0", "int4", "4":
		return KVQ4, nil
	}
	return "", fmt.Errorf("unknown KV cache type %q: want auto (or f16, bf16), q8 or q4", s)
}

// Bits returns the number of bits of a code; 0 if not quantized.
func (t KVType) Bits() int64 {
	switch t {
	case KVQ8:
		return 8
	case KVQ4:
		return 4
	}
	return 0
}
