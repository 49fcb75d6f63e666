//go:build race

package grammar

// raceFactor is how much less the long tests do under the race detector.
const raceFactor = 12
