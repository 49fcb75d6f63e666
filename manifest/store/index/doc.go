// Package index reads and edits the entries of a store's index: names, annotations and lookup.
//
// It works on an index in memory; package store reads and writes the file. An entry has a name, or is a referrer, or
// was written by another tool. Entries of the last two kinds are kept as they are.
package index
