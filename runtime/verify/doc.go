// Package verify checks models: that an image is intact, that logits are finite, and that they agree with a reference
// or with another model over a text.
//
// [Image] does not need the engine. The other checks take a loaded model, may run beside its requests, and free their
// state.
package verify
