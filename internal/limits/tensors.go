package limits

// Limits of a checkpoint's safetensors files, and of its other files. The largest published configurations have some
// MB, tokenizers 35 MB.
const (
	// TensorHeader bounds a file's header, as the reference library does, and an index.
	TensorHeader = 100_000_000
	// Tensors bounds the tensors of a file, of a checkpoint and of an index, and the metadata of a file. The largest
	// published checkpoints have some 200,000.
	Tensors = 1 << 19
	// TensorIndexNesting bounds values in values of the keys of an index that are ignored.
	TensorIndexNesting = 32
	// ModelFile bounds each file that is read as a whole, ModelJSON those that are configurations.
	ModelFile = 128 << 20
	ModelJSON = 32 << 20
	// JSONValues bounds the values of a configuration, JSONElements those of one object or list.
	JSONValues   = 1 << 21
	JSONElements = 1 << 17
)

func init() {
	const bound = "internal/limits/pyjson.TestBound"
	register(
		Limit{"ModelFile", "file of a model, beside weights", ModelFile, Bytes, "convert.TestLargeFiles"},
		Limit{"ModelJSON", "configuration file of a model", ModelJSON, Bytes, bound},
		Limit{"JSONValues", "values of a configuration file", JSONValues, Count, bound},
		Limit{"JSONElements", "values of one object or list of a configuration file", JSONElements, Count, bound},
		Limit{"TensorHeader", "header of a safetensors file, and an index", TensorHeader, Bytes,
			"safetensors.TestReadHeaderDamaged"},
		Limit{"Tensors", "tensors of a safetensors file, of a checkpoint and of an index", Tensors, Count,
			"safetensors.TestManyTensors"},
		Limit{"TensorIndexNesting", "values in values of an ignored key of an index", TensorIndexNesting, Levels,
			"safetensors.TestParseIndexDamaged"},
	)
}
