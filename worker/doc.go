// Package worker forms groups of ranks on several machines. Rank 0 calls [Form]; each other machine runs [Serve], which
// starts a process for each rank.
//
// Contract:
//   - All bytes between machines go over connections of package worker/tunnel, each for one purpose: "rank" carries
//     what a rank does and then its commands, "store" rank 0's blobs (package worker/shards), "ring" and "back" the
//     engine's ring, "about" what a machine is.
//   - The engine's ring has neither encryption nor timeouts. Its listeners are on 127.0.0.1, and so are those that the
//     ring connects to in place of the next rank. The link from rank r to r+1 is made by r's machine, but that from the
//     last rank to rank 0 by rank 0, which listens nowhere.
//   - A connection "rank" is the group's life: when it ends, the worker ends the rank's process, its listeners and its
//     other connections. A worker has many groups at a time.
//   - The package knows neither the engine nor models. What the ranks compute is the caller's: the commands are bytes
//     here.
package worker
