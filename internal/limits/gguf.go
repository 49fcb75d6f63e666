package limits

// Bounds on the header of a GGUF file, in package convert/gguf.
const (
	// GGUFHeader bounds the metadata and the descriptions of tensors. A vocabulary of 262,144 tokens takes about 12 MiB.
	GGUFHeader = 64 << 20
	// GGUFKeys bounds the metadata keys, and the arrays within arrays.
	GGUFKeys = 1 << 16
	// GGUFTensors bounds the tensors.
	GGUFTensors = 1 << 17
	// GGUFNesting bounds arrays within arrays.
	GGUFNesting = 4
)

func init() {
	const test = "convert/gguf.TestLimits"
	register(
		Limit{"GGUFHeader", "the header of a GGUF file", GGUFHeader, Bytes, test},
		Limit{"GGUFKeys", "metadata keys of a GGUF file, and its arrays within arrays", GGUFKeys, Count, test},
		Limit{"GGUFTensors", "tensors of a GGUF file", GGUFTensors, Count, test},
		Limit{"GGUFNesting", "levels of arrays within arrays in a GGUF file", GGUFNesting, Levels, test},
	)
}
