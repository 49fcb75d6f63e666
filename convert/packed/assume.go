package packed

import (
	"fmt"
	"maps"
	"slices"
)

// Assumptions about data that is not read. Each takes the usual case, or else the larger one.
const (
	assumedScales  = "the zero points times the scales need float32, as they usually do"
	assumedOrder   = "the groups of columns are in order, although there is an index of them"
	assumedNoOrder = "the groups of columns are not in order, as the configuration says"
	assumedPowers  = "the scales of fp8 weights are no powers of two, so that mxfp8 does not hold them"
	assumedBiases  = "the biases that the packer wrote are zero, unless the model has them"
	assumedGlobals = "every weight has another scale of the whole tensor"
)

// AssumedElements is what a GGUF file's headers do not tell.
const AssumedElements = "elements whose codes are not kept become F16; BF16 may be closer to them"

// assume counts a tensor for which something is assumed.
func (c *Checkpoint) assume(what string) { c.assumed[what]++ }

// Assumptions lists what was assumed, sorted, with the numbers of tensors.
func Assumptions(of map[string]int) (list []string) {
	for _, what := range slices.Sorted(maps.Keys(of)) {
		list = append(list, fmt.Sprintf("%s (%d tensors)", what, of[what]))
	}
	return list
}
