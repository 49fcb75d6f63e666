// Package collect removes from a store what nothing refers to, and measures disk usage.
//
// A collection marks the blobs that are reachable from the index and from unfinished work, then removes the others. It
// holds the store's lock exclusively, so it never runs between the writing of a blob and of the name that refers to it.
// If an entry cannot be read, it removes nothing, because the blobs that the entry refers to are unknown.
package collect
