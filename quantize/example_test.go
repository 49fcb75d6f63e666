package quantize_test

import (
	"encoding/binary"
	"fmt"
	"log"

	"github.com/ingotml/ingot/quantize"
)

// A row of 64 weights becomes 32 bytes of codes, with a scale and a bias.
func ExampleType_Encode() {
	weights := make([]float32, 64)
	for i := range weights {
		weights[i] = float32(i) / 10
	}
	src, err := binary.Append(nil, binary.LittleEndian, weights)
	if err != nil {
		log.Fatal(err)
	}
	blocks := quantize.Int4.NewBlocks(quantize.F32, len(weights)/quantize.Int4.Group())
	if err := quantize.Int4.Encode(blocks, src, quantize.F32); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d bytes, then %d\n", len(src), len(blocks.Packed)+len(blocks.Scales)+len(blocks.Biases))

	decoded := make([]byte, len(src))
	if err := quantize.Int4.Decode(decoded, quantize.F32, blocks, quantize.F32); err != nil {
		log.Fatal(err)
	}
	values, err := quantize.Float32s(decoded, quantize.F32)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.2f became %.2f\n", weights[21], values[21])
	// Output:
	// 256 bytes, then 40
	// 2.10 became 2.10
}
