package batch

import (
	"cmp"
	"time"
)

// gapLimit bounds the prefill rows of steps that also decode, so that running streams do not wait longer for their next
// tokens than the maximum gap. It adapts to the measured durations of such steps: they depend on the number of streams,
// their depths and the machine's load, so there is no model of them.
type gapLimit struct {
	max  time.Duration // constant
	rows float64
}

// Bounds of the prefill rows in a step that also decodes, and their number before the first measurement. Below
// minGapRows a prompt would hardly progress, so very small gaps are exceeded.
const (
	minGapRows     = 8
	initialGapRows = 32
)

// defaultMaxGap is the default of [runtime.Options.MaxGap].
const defaultMaxGap = 150 * time.Millisecond

// gapShare is the share of the maximum gap that a step aims at. The rest is for steps that take longer than the last
// ones, so that 99 % of the gaps are within the maximum.
const gapShare = 0.75

// Bounds of a change from one step to the next. Steps that take too long are shortened at once; longer ones are tried
// in small increments.
const (
	maxShrink = 0.5
	maxGrowth = 1.25
)

// limit returns the number of prefill rows of the next step.
func (p *gapLimit) limit() int {
	return max(int(cmp.Or(p.rows, initialGapRows))/minGapRows*minGapRows, minGapRows)
}

// add records a step with the given number of prefill rows, from the end of the step before it to its own. A short step
// says nothing about the limit unless the limit was what kept it short.
func (p *gapLimit) add(rows int, d time.Duration) {
	if rows <= 0 || d <= 0 {
		return
	}
	target := gapShare * p.max.Seconds()
	change := min(max(target/d.Seconds(), maxShrink), maxGrowth)
	base := cmp.Or(p.rows, initialGapRows)
	if rows < p.limit() {
		if change > 1 {
			return
		}
		base = float64(rows)
	}
	p.rows = min(max(base*change, minGapRows), maxRows)
}
