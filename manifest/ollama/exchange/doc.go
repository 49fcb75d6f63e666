// Package exchange copies models between the model store and Ollama's store.
//
// Ollama's store is a folder without locks, which a running Ollama may clean at any time. An import verifies every blob
// that it adds. An export writes the manifest last and replaces files only by rename, so that Ollama sees a complete
// model or none. Both share disk space with the other store where that is safe.
package exchange
