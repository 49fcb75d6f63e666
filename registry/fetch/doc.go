// Package fetch reads blobs of a repository: into a store, in parts over several connections, or as a stream.
//
// Contract:
//
//   - What is in the store when [Fetcher.Fetch] returns has the blob's digest. Bytes that an earlier run left are
//     hashed and used.
//   - A server may ignore ranges, send less than it was asked for, stall or break off: the rest is asked for again, as
//     often as the repository's budget allows.
package fetch
