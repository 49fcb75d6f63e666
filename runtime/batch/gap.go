package batch

import (
	"cmp"
	"time"
)

// gapLimit bounds the rows of steps that decode and prefill, so that running streams do not wait longer for their next
// tokens than the maximum gap. It adapts to the measured durations of such steps: they depend on the number of streams,
// their depths and the machine's load, so there is no model of them.
type gapLimit struct {
	max  time.Duration // constant
	rows float64       // that take gapShare of it, as far as known; 0: before the first measurement
}

// gapMultiple divides the number of rows in a step that decodes and prefills: a CPU kernel multiplies this many rows by
// weights that it has unpacked once, and a row more costs another pass over them. A step has at least minGapRows
// prefill rows. With fewer a prompt would hardly progress, so very small gaps are exceeded.
const (
	gapMultiple    = 8
	minGapRows     = 4
	initialGapRows = 32
)

// defaultMaxGap is the default of [runtime.Options.MaxGap].
const defaultMaxGap = 150 * time.Millisecond

// gapShare is the share of the maximum gap that a step aims at. The rest is for steps that take longer than the last
// ones, so that 99 % of the gaps are within the maximum.
const gapShare = 0.85

// Bounds of a change from one step to the next. Longer steps take less time per row, so growth may be fast. It has a
// bound because a measured time may be too short by chance.
const (
	maxShrink = 0.5
	maxGrowth = 2
)

// limit returns the number of prefill rows of the next step, beside a number of rows that decode.
func (p *gapLimit) limit(decoding int) int {
	rows := int(cmp.Or(p.rows, initialGapRows)) / gapMultiple * gapMultiple
	if least := decoding + minGapRows; rows < least {
		rows = (least + gapMultiple - 1) / gapMultiple * gapMultiple
	}
	return rows - decoding
}

// add records a step with the given numbers of rows, from the end of the step before it to its own. A step that prompts
// did not fill says nothing about longer ones.
func (p *gapLimit) add(prefill, decoding int, d time.Duration) {
	if prefill <= 0 || d <= 0 {
		return
	}
	rows := float64(prefill + decoding)
	fitting := rows * gapShare * p.max.Seconds() / d.Seconds()
	if prefill < p.limit(decoding) && fitting > rows {
		return
	}
	p.rows = min(max(fitting, rows*maxShrink), max(rows*maxGrowth, rows+gapMultiple), maxRows)
}
