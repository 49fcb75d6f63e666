// Package convert makes a model image in the local store from a checkpoint folder.
//
// It works in three steps, so that nothing is written before all is known to be right:
//
//	Open      the inventory: configuration, tensor headers, the other files; reads no weights
//	Plan      what will be written, as plain data: every blob with its sources, type, shape and size, and what is dropped and why
//	Write     the blobs, streamed from the source with positioned reads, several tensors at a time
//
// [Create] does all three for a Modelfile.
//
// Contract: the same contents give the same manifest digest on every machine, wherever the folder lies, however the
// weights are split over files, and whatever the number of processors. Blobs stay in the store's ingest folder until the
// last one is complete, so a run that fails or is cancelled leaves the store as it was. Sources are never mapped.
// Memory is a small buffer per processor plus the files that are not weights.
package convert
