package limits

// Limits of a checkpoint's safetensors files.
const (
	// TensorHeader bounds a file's header, as the reference library does, and an index.
	TensorHeader = 100_000_000
	// Tensors bounds the tensors of a file, of a checkpoint and of an index, and the metadata of a file. The largest
	// published checkpoints have some 200,000.
	Tensors = 1 << 19
	// TensorIndexNesting bounds values in values of the keys of an index that are ignored.
	TensorIndexNesting = 32
)

func init() {
	register(
		Limit{"TensorHeader", "header of a safetensors file, and an index", TensorHeader, Bytes,
			"safetensors.TestReadHeaderDamaged"},
		Limit{"Tensors", "tensors of a safetensors file, of a checkpoint and of an index", Tensors, Count,
			"safetensors.TestManyTensors"},
		Limit{"TensorIndexNesting", "values in values of an ignored key of an index", TensorIndexNesting, Levels,
			"safetensors.TestParseIndexDamaged"},
	)
}
