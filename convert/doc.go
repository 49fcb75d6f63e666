// Package convert creates a model image in the local store from a checkpoint folder, or from another image.
//
// It works in three steps, so that all checks precede the first write:
//   - Open: the inventory, that is the configuration, the tensor headers and the other files. It reads no weights.
//   - Plan: the contents of the image as plain data. Each blob is listed with its sources, transforms, type, precision
//     rule, shape and size.
//   - Write: the blobs, streamed from the sources with positioned reads, on all processors.
//
// [Create] performs all three for a Modelfile. [DryRun] stops after the plan.
//
// Contract:
//   - The same contents and options give the same manifest digest on every machine. The location of the folder, the
//     number of shards, the number of processors and the amount of memory have no influence.
//   - Blobs stay in the store's ingest folder until the last one is complete. A run that fails or is killed leaves
//     models and blobs unchanged; the next run with the same plan and sources resumes it.
//   - Sources are never mapped. A source that changes while it is read is an error.
//   - Memory is a fixed number of buffers, plus the files that are not weights.
package convert
