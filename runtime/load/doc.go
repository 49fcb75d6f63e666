// Package load brings the model of an image into the engine's memory: it opens and checks the tensor blobs, maps the
// weights, and builds the model and its draft.
//
// A [Model] is used with [Model.Do], which runs a function on the engine's thread as long as the model is loaded. Close
// waits for it. A load that fails leaves no arrays behind.
package load
