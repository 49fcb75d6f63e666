package runtime

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cache"
)

// KVType is how a model's caches keep keys and values. States of recurrent layers are not concerned.
type KVType string

// The types. In 8 and 4 bits each group of 32 channels has a scale and a bias: 9 and 5 bits for each number.
const (
	KVPlain KVType = ""   // as they are computed: in the type of the activations
	KVQ8    KVType = "q8" // 8 bits
	KVQ4    KVType = "q4" // 4 bits
)

// ParseKVType reads a type as people write it: auto, f16 or bf16 (as computed, whichever it is), q8 or q8_0, q4 or q4_0.
func ParseKVType(s string) (KVType, error) {
	switch strings.ToLower(s) {
	case "", "auto", "f16", "fp16", "bf16":
		return KVPlain, nil
	case "q8", "q8_0", "int8", "8":
		return KVQ8, nil
	case "q4", "q4_0", "int4", "4":
		return KVQ4, nil
	}
	return "", fmt.Errorf("%q is no type of keys and values: auto (or f16, bf16), q8 or q4", s)
}

// kinds are a model's kinds of layers with keys and values of this type.
func (t KVType) kinds(all []cache.Kind) ([]cache.Kind, error) {
	bits := t.bits()
	if bits == 0 && t != KVPlain {
		return nil, fmt.Errorf("%q is no type of keys and values", t)
	}
	return cache.Packed(all, int(bits)), nil
}

// bits are those of a code, 0 where there are none.
func (t KVType) bits() int64 {
	switch t {
	case KVQ8:
		return 8
	case KVQ4:
		return 4
	}
	return 0
}
