// Package hub reads models of the Hugging Face hub and of ModelScope: names, lists of files, and ranges of files.
//
// A [Client] opens a repository as a [Folder] at one commit. Its files are read over HTTP by ranges, or from the hub's
// own cache if they are there. The protocol is that of the Python package huggingface_hub, which the tests run against
// the same fake hub. See https://huggingface.co/docs/hub/api.
//
// Contract:
//
//   - A revision is resolved to its commit once. What is read later is of that commit, or is an error.
//   - A list of files is complete or an error. Its pages are asked at the endpoint only.
//   - A file of the cache is compared with the hash in its name before it is used, unless this program did so and the
//     file has not changed. [Folder.Compared] tells which files were compared as a whole, in whatever way.
//   - What look-alikes of the hub lack has one other way each: /tree/, HEAD, ranges, a token that is refused.
//   - The token is sent to the origin (scheme, host and port) of the endpoint only. Tokens, signed addresses and
//     queries appear in no error, notice or record.
//   - Failures that may pass are retried, by package verdict: connections, stalls, short bodies, 5xx, rate limits,
//     expired signatures. A read gives up after [Options.Attempts] failures without progress, or when its context ends.
//   - A small file is checked against its hash in the repository. A large file is checked against its published SHA-256
//     where all of its bytes are read, and by length, size and etag otherwise.
//   - Memory is bounded by [Options.Memory], whatever the size of a file.
package hub
