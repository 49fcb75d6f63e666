// Package disk does to files what operating systems do in different ways.
//
// It publishes complete files durably, knows how much space a disk has left, and allocates, clones and writes files in
// the fastest way that the system has. Where a system lacks a feature, the function has no effect or reports an error,
// as its comment says. Nothing here knows what a store is.
package disk
