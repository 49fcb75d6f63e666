package batch

import (
	"time"
)

// alternation alternates steps that only decode with steps that only prefill. A CPU evaluates a hundred rows of a
// prompt in one step faster than a few in each of many steps, but streams would wait for such a step. So decoding runs
// ahead until each stream has tokens for the time of the next prefill step, and the tokens are sent evenly. It applies
// where few rows fit into the maximum gap beside the streams.
type alternation struct {
	max    time.Duration         // the maximum gap; constant
	decode map[int]time.Duration // smoothed durations of steps that only decode, by the number of requests
	ahead  int                   // steps that only decoded since the last prefill step
}

// Shares of the maximum gap: the time between two tokens, and when the next one is due at the latest. The rest is for
// steps that take longer than predicted.
const (
	spacingShare = 0.8
	dueShare     = 0.9
)

// Bounds of alternating steps. Where efficientRows fit into the gap, large steps gain nothing. A prefill step takes at
// most as long as one among several prompts, and what mostAhead decoding steps gain; with less than leastChunk rows it
// would be as inefficient as rows beside streams. After limitAhead decoding steps a prefill step comes in any case.
const (
	efficientRows = 128
	leastChunk    = 24
	mostAhead     = 8
	limitAhead    = 3 * mostAhead
)

// add records a step in which the given number of requests decoded.
func (p *alternation) add(decoding int, d time.Duration) {
	if p.decode == nil {
		p.decode = map[int]time.Duration{}
	}
	old, ok := p.decode[decoding]
	if !ok {
		old = d
	}
	p.decode[decoding] = old + (d-old)/3
}

// decodeTime predicts the duration of a step in which the given number of requests decodes; 0 before the first
// measurement. A number that was not measured takes as long as the next smaller one and the other rows in prefill.
func (p *alternation) decodeTime(rate prefillRate, decoding int) time.Duration {
	for n := decoding; n > 0; n-- {
		if d, ok := p.decode[n]; ok {
			return d + rate.time(decoding-n)
		}
	}
	var least time.Duration
	for _, d := range p.decode {
		if least == 0 || d < least {
			least = d
		}
	}
	return least
}

// chunk returns the number of rows of a prefill step and its duration at a rate, if steps that decode take the given
// time; 0 if steps should not alternate.
func (p *alternation) chunk(rate prefillRate, decode time.Duration) (rows int, d time.Duration) {
	gain := time.Duration(spacingShare*float64(p.max)) - decode // of a step, in time until the next token is due
	if rate == 0 || gain <= 0 || float64(rate)*gain.Seconds() >= efficientRows {
		return 0, 0
	}
	d = min(promptStepTime, mostAhead*gain)
	if rows = int(float64(rate)*d.Seconds()) / gapMultiple * gapMultiple; rows < leastChunk {
		return 0, 0
	}
	return rows, d
}

// plan returns the rows of each request in the next step, and false if steps should not alternate. A step that decodes
// has the streams that need tokens, and prompts that it completes without costing another pass over the weights.
func (p *alternation) plan(rate prefillRate, prompts []prompt, decoding []*generation) (map[*generation]int, bool) {
	rows := map[*generation]int{}
	decode := p.decodeTime(rate, len(decoding))
	chunk, d := p.chunk(rate, decode)
	if chunk == 0 && decode > 0 {
		p.ahead = 0
		return rows, false
	}
	now := time.Now()
	for _, g := range decoding {
		due := g.released.Add(time.Duration(dueShare * float64(p.max)))
		if decode == 0 || due.Sub(now)-decode < d { // the first step is measured
			rows[g] = g.usableRows()
			if chunk > 0 {
				g.spacing = time.Duration(spacingShare * float64(p.max))
			}
		}
	}
	if len(rows) == 0 || p.ahead >= limitAhead {
		p.ahead = 0
		clear(rows)
		for i, n := range divideRows(chunk, prompts) {
			rows[prompts[i].g] = n
		}
		return rows, true
	}
	p.ahead++
	free := (len(rows)+gapMultiple-1)/gapMultiple*gapMultiple - len(rows)
	for _, q := range prompts {
		if n := q.g.pending(); n <= min(free, q.capacity) {
			rows[q.g] = n
			free -= n
		}
	}
	return rows, true
}
