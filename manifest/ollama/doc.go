// Package ollama converts model images to Ollama's encoding and back, and parses Ollama's names.
//
// The encoding is what Ollama's safetensors engine reads: a Docker manifest with Ollama's media types. It keeps all
// facts of an image, so that an image survives the way there and back. The package touches neither disk nor network;
// package exchange copies models from and to Ollama's store.
package ollama
