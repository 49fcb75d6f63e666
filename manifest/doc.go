// Package manifest defines model images: their names, layers, annotations and media types.
//
// An [Image] is a plain value: descriptive facts ([Config]) and a list of content-addressed layers ([Layer]), one blob
// per logical tensor and one per file. An encoding converts an image to a manifest and config, and back:
// [EncodeModelPack] writes the CNCF model-spec encoding, [ollama.Encode] writes Ollama's, and [encoding.Decode] reads
// both. Encoding is deterministic, so an image's digest depends on its content alone. An encoded image contains no
// date, owner or name in the store.
//
// The rooms beneath it:
//
//	encoding         which encodings there are
//	ollama           Ollama's encoding and names
//	ollama/exchange  copies models from and to Ollama's store
//	store            the model store on disk, and in folders of its own what works on it
//
// Functions that parse manifests take untrusted input and respect package limits. The package is pure Go, does not
// touch the disk and does not depend on the engine.
package manifest
