// Package convert creates a model image in the local store from a Modelfile, which names a checkpoint folder or another
// image, and perhaps adapters and a draft.
//
// It works in three steps, so that all checks precede the first write. Each is a room:
//   - Package source opens what FROM names: the configuration, the tensor headers and the other files. It reads no
//     weights.
//   - Package plan decides the contents of the image as plain data. Each blob is listed with its sources, transforms,
//     type, precision rule, shape and size.
//   - Package write writes the blobs, streamed from the source with positioned reads, on all processors. Package
//     provenance then records what they were made from.
//
// [Create] performs all three for a Modelfile. [DryRun] stops after the plan. Package export goes the other way.
//
// Contract:
//   - The same contents and options give the same manifest digest on every machine. The location of the folder, the
//     number of shards, the number of processors and the amount of memory have no influence.
//   - Blobs stay in the store's ingest folder until the last one is complete. A run that fails or is killed leaves
//     models and blobs unchanged; the next run with the same plan and sources resumes it.
//   - Sources are never mapped. A source that changes while it is read is an error.
//   - Memory is a fixed number of buffers, plus the files that are not weights.
package convert
