package modeltest

import (
	"io"
	"slices"
	"strings"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// blocksEnd and scalesEnd end the names of the experts of gpt-oss, which are published in mxfp4: X_blocks [..., groups,
// 16] and X_scales [..., groups]. Their elements are exact in bf16.
const blocksEnd, scalesEnd = "_blocks", "_scales"

func isBlocks(name string) bool { return strings.HasSuffix(name, blocksEnd) }

// isScales reports whether a tensor is the scales of blocks.
func isScales(ckpt *safetensors.Checkpoint, name string) bool {
	base, ok := strings.CutSuffix(name, scalesEnd)
	if !ok {
		return false
	}
	_, ok = ckpt.Lookup(base + blocksEnd)
	return ok
}

// blocksShape returns the shape of the elements of blocks.
func blocksShape(shape []int64) []int64 {
	n := len(shape) - 1
	elements := slices.Clone(shape[:n])
	elements[n-1] *= 2 * shape[n]
	return elements
}

// decodeBlocks returns the elements of blocks in bf16.
func decodeBlocks(ckpt *safetensors.Checkpoint, name string, codes []byte) ([]byte, error) {
	s, _ := ckpt.Lookup(strings.TrimSuffix(name, blocksEnd) + scalesEnd)
	scales, err := io.ReadAll(s.Reader())
	if err != nil {
		return nil, err
	}
	out := make([]byte, 4*len(codes))
	return out, quantize.MXFP4.Decode(out, quantize.BF16, quantize.Blocks{Packed: codes, Scales: scales}, quantize.BF16)
}
