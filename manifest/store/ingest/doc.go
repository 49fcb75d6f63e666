// Package ingest keeps unfinished work in a store's folder ingest/, so that a later run can resume it.
//
// The kinds of work are the [Staging] folder of a create, the [Partial] blobs and the manifest of a pull ([Pulling]),
// the [Session] of a push, and files uploaded for a create ([PutUpload]). Each has its own lock file and survives a
// killed process. [Leftovers] lists all of it for a collection, which keeps resumable work for [Age] after its last
// use.
package ingest
