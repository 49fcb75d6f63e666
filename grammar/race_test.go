//go:build race

package grammar

// raceFactor divides the amount of work of the long tests.
const raceFactor = 12
