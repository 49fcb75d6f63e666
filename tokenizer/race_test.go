//go:build race

package tokenizer

// raceDetector reports whether the race detector is on, which makes tests about ten times slower.
const raceDetector = true
