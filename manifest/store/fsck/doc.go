// Package fsck checks a store, and repairs it without losing data.
//
// [Run] hashes every blob and follows every entry of the index. A repair moves what is corrupt to quarantine/ and
// downloads good copies through a function of the caller. [CheckBlobs] verifies one model.
package fsck
