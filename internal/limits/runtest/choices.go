package runtest

import (
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"sync"
)

// Choices makes decisions from the bytes of a fuzz target's input. A fuzzer that changes a byte changes a decision, so
// inputs stay well formed where the target wants them to and reach code that texts of random bytes do not. When the
// bytes have ended, each decision is the first one.
type Choices struct{ data []byte }

// NewChoices reads decisions from data.
func NewChoices(data []byte) *Choices { return &Choices{data} }

// Done reports whether the bytes have ended.
func (c *Choices) Done() bool { return len(c.data) == 0 }

// Byte returns the next byte, or 0.
func (c *Choices) Byte() byte {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return b
}

// N returns a number below n, which is at most 256.
func (c *Choices) N(n int) int { return int(c.Byte()) % n }

// Yes returns true for about one byte in n.
func (c *Choices) Yes(n int) bool { return c.N(n) == n-1 }

// Pick returns one of a list.
func (c *Choices) Pick(list ...string) string { return list[c.N(len(list))] }

// Bytes returns the next bytes, at most 255.
func (c *Choices) Bytes() []byte {
	n := min(int(c.Byte()), len(c.data))
	b := c.data[:n:n]
	c.data = c.data[n:]
	return b
}

// Joined returns up to most texts that next makes, with separators.
func (c *Choices) Joined(most int, separator string, next func() string) string {
	list := make([]string, c.N(most+1))
	for i := range list {
		list[i] = next()
	}
	return strings.Join(list, separator)
}

// Decisions are the decisions of a server that handles requests concurrently. They depend on the input, on the request,
// and on the number of equal requests before it, but not on the order of other requests. It is safe for concurrent use.
type Decisions struct {
	mu       sync.Mutex
	data     []byte
	requests map[string]int
	total    int
}

// Begin starts with another input.
func (a *Decisions) Begin(data []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.data, a.requests, a.total = data, map[string]int{}, 0
}

// To returns the decisions for a request, such as "GET /path", and the number of equal requests before it.
func (a *Decisions) To(request string) (c *Choices, turn int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	turn = a.requests[request]
	a.requests[request]++
	a.total++
	if len(a.data) == 0 {
		return NewChoices(nil), turn
	}
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, request)
	at := (int(sum.Sum32()>>8) + turn*13) % len(a.data)
	return NewChoices(slices.Concat(a.data[at:], a.data[:at])), turn
}

// Requests returns the number of requests since Begin.
func (a *Decisions) Requests() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.total
}
