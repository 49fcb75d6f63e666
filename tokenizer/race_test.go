//go:build race

package tokenizer

// raceDetector makes everything about ten times slower.
const raceDetector = true
