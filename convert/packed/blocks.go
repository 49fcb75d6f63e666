package packed

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// blocksEnd and scalesEnd end the names of the tensors that OpenAI publishes mxfp4 as: X_blocks (U8), whose last
// dimension is the 16 bytes of a group, and X_scales (U8). The codes are in the order of package quantize.
// https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/integrations/mxfp4.py
const blocksEnd, scalesEnd = "_blocks", "_scales"

// blocks reads a weight's headers. Its name is that of the blocks, because the plain tensor X is transposed.
func (c *Checkpoint) blocks(t safetensors.Source) (Weight, error) {
	name := strings.TrimSuffix(t.Name, blocksEnd) + scalesEnd
	scales, ok := c.Lookup(name)
	if !ok {
		return Weight{}, wrong(t, "it holds codes of mxfp4, but %s is missing; download the checkpoint again", name)
	}
	last := len(t.Shape) - 1
	group := int64(quantize.MXFP4.Group())
	if last < 2 || t.Shape[last] != group/2 || numbers.Count(t.Shape) == 0 {
		return Weight{}, wrong(t, "it has shape %v, want matrices of groups of %d bytes; download the checkpoint again",
			t.Shape, group/2)
	}
	if scales.DType != safetensors.U8 || !slices.Equal(scales.Shape, t.Shape[:last]) {
		return Weight{}, wrong(scales, "it is %s %v, but the scales of %s are U8 %v; download the checkpoint again",
			scales.DType, scales.Shape, t.Name, t.Shape[:last])
	}
	shape := slices.Clone(t.Shape[:last])
	shape[last-1] *= group
	return Weight{
		Name: t.Name, Shape: shape, DType: safetensors.BF16, Parts: []safetensors.Source{t, scales},
		Type: quantize.MXFP4, Format: "mxfp4", Read: fp4Weight{codes: t, scales: scales, format: quantize.MXFP4},
	}, nil
}
