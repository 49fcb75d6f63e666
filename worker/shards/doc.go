// Package shards gives a worker what its rank needs of a model: the small files and its parts of the tensors.
//
// Contract:
//   - A store that has the whole image is used as it is. Otherwise the parts are kept in a store of their own below it,
//     the folder shards: blobs that the worker's store has are linked, small ones are fetched whole, and of the others
//     only the ranges that the rank reads, into a sparse file of the blob's size.
//   - [Handler] is rank 0's end: the pull half of the distribution protocol (GET of manifests and blobs, with ranges)
//     for one image. [Source] is the worker's end. Connections come from the caller and are secure.
//   - A whole blob is checked by its digest. A SHA-256 says nothing about a range, so rank 0 checks the blob before it
//     sends the first range of it. The worker notes the SHA-256 of each part that it has written, and checks it when it
//     first uses the part after it has started.
//   - An interrupted fetch continues with the blobs that are missing.
package shards
