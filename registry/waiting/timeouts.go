package waiting

import (
	"net/http"
	"sync"
	"time"
)

// How long a request waits at first, and at most.
const (
	Response = 30 * time.Second // for the header of a response
	Body     = 10 * time.Second // for more of its body
	Most     = 10 * time.Minute
)

// Write is how many times as long a request waits for the response to what it has sent: a registry may hash a blob and
// move it to its final place, or check all blobs of a manifest.
const Write = 10

// Factor returns how many times as long a request with this method waits for its response: [Write] if it changes
// something.
func Factor(method string) int {
	if method == http.MethodGet || method == http.MethodHead {
		return 1
	}
	return Write
}

// Host is what is known of how long one host takes. The zero value is a host that nothing is known of.
type Host struct {
	Timeout time.Duration // how long each wait is, set by the user; 0: it grows

	mu      sync.Mutex
	longest time.Duration // silence that ended with data
}

// ended notes a silence that ended with data. Short ones, in relation to what the watch waited for, say nothing.
func (h *Host) ended(silence, wait time.Duration) {
	if silence < wait/4 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.longest = max(h.longest, silence)
}

// Timeouts decide how long the requests of one operation wait, such as the parts of one blob. They grow with each
// stall, once for requests that stall together.
type Timeouts struct {
	host *Host
	most time.Duration

	mu    sync.Mutex
	level int
}

// New returns the timeouts of an operation whose requests wait at most for this long; 0: [Most].
func (h *Host) New(most time.Duration) *Timeouts {
	if most == 0 {
		most = Most
	}
	return &Timeouts{host: h, most: most}
}

// wait returns how long a request waits now, if it waits for factor times base at first, and the level that this is of.
func (p *Timeouts) wait(base time.Duration, factor int) (time.Duration, int) {
	times := time.Duration(factor)
	if p.host.Timeout > 0 {
		return p.host.Timeout * times, 0
	}
	p.host.mu.Lock()
	longest := p.host.longest
	p.host.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(max(base*times<<p.level, 2*longest), max(p.most, base*times)), p.level
}

// maxLevel is where the wait for a body reaches Most.
const maxLevel = 6

// stalled makes later requests wait twice as long as those of a level.
func (p *Timeouts) stalled(level int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.level == level {
		p.level = min(level+1, maxLevel)
	}
}

// Passed takes back one stall: a request has got all that it asked for.
func (p *Timeouts) Passed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.level = max(p.level-1, 0)
}
