// Package convert makes a model image in the local store from a checkpoint folder, or from another image.
//
// It works in three steps, so that nothing is written before all is known to be right:
//
//	Open      the inventory: configuration, tensor headers, the other files; reads no weights
//	Plan      what will be written, as plain data: every blob with its sources, what is done to them, type, rule, shape and size
//	Write     the blobs, streamed from the source with positioned reads, on all processors
//
// [Create] does all three for a Modelfile; [DryRun] stops after the plan.
//
// Contract: the same contents and options give the same manifest digest on every machine, wherever the folder lies, however
// the weights are split over files, and whatever the number of processors and the memory. Blobs stay in the store's
// ingest folder until the last one is complete, so a run that fails or is killed leaves models and blobs as they were, and
// the next one with the same plan and sources goes on from there. Sources are never mapped; one that changes while it is
// read is an error. Memory is a fixed number of buffers plus the files that are not weights.
package convert
