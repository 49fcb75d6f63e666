// Package encoding decides in which encoding a manifest is, and decodes it.
//
// The encodings are those of package manifest (modelpack) and package ollama. [Decode] takes untrusted input: an image
// that it returns is valid, and every other manifest is one of the errors of package manifest.
package encoding
