package runtest

// sampled is how many cases one stands for under the race detector.
const sampled = 8

// Sample returns the cases that a short run takes: one in eight under the race detector, where cases take ten times as
// long and differ in their data, not in their goroutines. `make test` takes all.
func Sample[T any](cases []T) []T {
	if !Race || Long() {
		return cases
	}
	var out []T
	for i := 0; i < len(cases); i += sampled {
		out = append(out, cases[i])
	}
	return out
}

// Rounds returns how many of n equal rounds a short run makes: one in eight under the race detector, at least one.
func Rounds(n int) int {
	if !Race || Long() {
		return n
	}
	return max(1, n/sampled)
}
