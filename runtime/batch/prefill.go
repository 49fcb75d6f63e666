package batch

import (
	"time"
)

// prefill decides how many prefill rows a step has.
type prefill struct {
	chunk int         // rows in a step; 0: as many as fit into the step's target duration
	first int         // rows before the first measurement; 0: initialRows
	rate  prefillRate // measured
	gap   gapLimit    // of steps that decode, too
}

// rowLimit returns the number of prefill rows in a step with the given numbers of prompts and decoding requests.
func (p *prefill) rowLimit(prompts, decoding int) int {
	switch {
	case p.chunk > 0:
		return p.chunk
	case p.first > 0 && p.rate == 0:
		return p.first
	case decoding > 0:
		return p.gap.limit(decoding)
	case prompts > 1:
		return p.rate.rows(promptStepTime)
	}
	return max(p.rate.rows(soloStepTime)/rowMultiple, 1) * rowMultiple
}

// Target durations of a step that only prefills, by the other requests that it delays: promptStepTime if there are
// several prompts, soloStepTime if there are none. A solo step delays only requests that arrive during it. A row is one
// token of a forward pass. The number of rows in a solo step is a multiple of rowMultiple, which suits the kernels.
const (
	soloStepTime   = 3 * time.Second
	promptStepTime = time.Second
	rowMultiple    = 256 // a CPU kernel unpacks a tile of weights once for this many rows
)

// Bounds of the prefill rows in a step, and their number before the first measurement.
const (
	minRows     = 32
	initialRows = 128
	maxRows     = 2048
)

// prefillRate is the measured throughput in rows per second, smoothed over recent steps; 0 before the first
// measurement.
type prefillRate float64

// rows returns how many rows a step of duration d can evaluate.
func (p prefillRate) rows(d time.Duration) int {
	if p == 0 {
		return initialRows
	}
	return min(max(int(float64(p)*d.Seconds())/minRows*minRows, minRows), maxRows)
}

// copyRate is how many bytes of restored state a step copies per second. The pages of new memory take most of it.
const copyRate = 3e9

// copying returns the number of rows whose prefill takes as long as copying the bytes.
func (p prefillRate) copying(bytes int64) int { return int(float64(bytes) / copyRate * float64(p)) }

// add records a step. Steps with few rows are ignored: they do not predict the throughput of larger ones.
func (p *prefillRate) add(rows int, d time.Duration) {
	if rows < minRows || d <= 0 {
		return
	}
	now := prefillRate(float64(rows) / d.Seconds())
	if *p == 0 {
		*p = now
	}
	*p += (now - *p) / 3
}
