// Package store keeps models on disk: blobs by digest, and an index of names.
//
// A [Store] is an OCI image layout (image-spec v1.1.1, image-layout.md), so other OCI tools can read it. Its folder
// contains:
//
//	oci-layout  index.json  blobs/sha256/HEX   the layout
//	ingest/                                    files being written, and state of interrupted runs (package ingest)
//	holders/                                   processes that hold the store's lock, for messages only (package lock)
//	quarantine/                                what package fsck found to be corrupt; the program never deletes it
//	server-secret                              see [Store.Secret]
//	verified                                   which blobs were hashed since their last change; see [Store.VerifyBlobs]
//	lock  index.lock                           lock files, never deleted (package lock)
//
// Several processes may use a store at once. Files are replaced only by rename, and a blob is complete, synced and
// read-only before it is renamed to its digest. Readers therefore need no lock, and after a crash the store is in its
// old or its new state. A process that writes blobs holds [Store.Lock], a shared lock, from its first blob to its last
// Put; a collection holds it exclusively. index.json is rewritten as a whole under index.lock. The lock order is lock,
// then index.lock.
//
// The rooms beneath it work on a store without access to its fields:
//
//	index      reads and edits the entries of index.json, in memory
//	lock       the store's locks, and who holds them
//	disk       what operating systems do in different ways: durable renames, free space, owners
//	ingest     unfinished work in ingest/: staging of a create, downloads, uploads, sessions of pushes
//	collect    removes names and garbage, and measures disk usage
//	fsck       checks and repairs a store
//	storetest  what the tests of these packages share
//
// The package is pure Go and does not depend on the engine.
package store
