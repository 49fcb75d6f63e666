// Package manifest defines model images, their names and encodings, and the local store.
//
// An [Image] is a plain value: descriptive facts ([Config]) and a list of content-addressed layers ([Layer]), one blob
// per logical tensor and one per file. An encoding converts an image to a manifest and config, and back:
// [EncodeModelPack] writes the CNCF model-spec encoding, [EncodeOllama] writes Ollama's, and [Decode] reads both.
// Encoding is deterministic, so an image's digest depends on its content alone. An encoded image contains no date,
// owner or name in the store.
//
// A [Store] is an OCI image layout (image-spec v1.1.1, image-layout.md), so other OCI tools can read it. Its
// folder contains:
//
//	oci-layout  index.json  blobs/sha256/HEX   the layout
//	ingest/                                    files being written, and state of interrupted runs
//	                                           (see [Ingest], [Partial] and [Session])
//	holders/                                   processes that hold the store's lock, for messages only
//	quarantine/                                what Fsck found to be corrupt; the program never deletes it
//	server-secret                              see [Store.Secret]
//	lock  index.lock                           lock files, never deleted
//
// Several processes may use a store at once. Files are replaced only by rename, and a blob is complete, synced and
// read-only before it is renamed to its digest. Readers therefore need no lock, and after a crash the store is in its
// old or its new state. A process that writes blobs holds [Store.Lock], a shared lock, from its first blob to its last
// Put; a collection holds it exclusively. index.json is rewritten as a whole under index.lock. The lock order is lock,
// then index.lock.
//
// The package is pure Go and does not depend on the engine.
package manifest
