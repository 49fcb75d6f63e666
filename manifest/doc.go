// Package manifest knows what a model image is, what it is called, and how it lies in the local store.
//
// An [Image] is a plain value: facts for people ([Config]) and a list of content-addressed layers ([Layer]), one
// blob for each logical tensor and one for each file. Encodings turn it into registry manifests and back;
// [EncodeModelPack] writes the CNCF model-spec one, and [Decode] reads every encoding that the package knows.
// Encoding is deterministic: the same image gives the same bytes, so its digest depends on content alone. No date,
// owner or store name is ever part of it.
//
// A [Store] is an OCI image layout (image-spec v1.1.1, image-layout.md) with a folder for partial files and two
// lock files beside it, so other OCI tools can read it:
//
//	oci-layout  index.json  blobs/sha256/HEX   the layout
//	ingest/                                    files being written, and those of unfinished runs (see [Ingest], [Partial], [Session])
//	holders/                                   who holds the store's lock, for messages only
//	quarantine/                                what Fsck found bad, never removed by the program
//	lock  index.lock                           locks, never removed
//
// Several processes may use one store at once. Files change by rename only, and a blob is complete, synced and
// read-only before it gets its name, so a reader needs no lock and a crash at any moment leaves the old state or the
// new one. A process that writes blobs holds [Store.Lock] from its first blob to its last Put: collection of
// unreferenced blobs waits for all such holders. index.json is rewritten whole under index.lock. Locks are taken in the
// order lock, index.lock.
//
// The package is pure Go and does not know the engine.
package manifest
