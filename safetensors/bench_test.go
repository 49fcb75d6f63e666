package safetensors

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkReadHeader reads the header of 100,000 tensors, as a shard of a mixture of experts has them.
func BenchmarkReadHeader(b *testing.B) {
	var header strings.Builder
	header.WriteString(`{"__metadata__":{"format":"pt"}`)
	const tensors = 100_000
	for i := range tensors {
		header.WriteString("," + entry(fmt.Sprintf("model.layers.%d.mlp.experts.%d.down_proj.weight", i/512, i%512), "BF16",
			"[2,1]", fmt.Sprintf("[%d,%d]", 4*i, 4*i+4)))
	}
	text := raw(header.String()+"}", 4*tensors)
	b.SetBytes(int64(header.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadHeader(bytes.NewReader(text), int64(len(text))); err != nil {
			b.Fatal(err)
		}
	}
}
