package limits

// Limits of the files of a model beside its weights. The largest published configurations have some MB, tokenizers
// 35 MB.
const (
	// ModelFile bounds each file that is read as a whole, ModelJSON those that are configurations.
	ModelFile = 128 << 20
	ModelJSON = 32 << 20
	// JSONValues bounds the values of a configuration, JSONElements those of one object or list.
	JSONValues   = 1 << 21
	JSONElements = 1 << 17
)

func init() {
	const test = "limits/pyjson.TestBound"
	register(
		Limit{"ModelFile", "file of a model, beside weights", ModelFile, Bytes, "convert.TestLargeFiles"},
		Limit{"ModelJSON", "configuration file of a model", ModelJSON, Bytes, test},
		Limit{"JSONValues", "values of a configuration file", JSONValues, Count, test},
		Limit{"JSONElements", "values of one object or list of a configuration file", JSONElements, Count, test},
	)
}
