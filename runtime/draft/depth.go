package draft

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// Depths chooses the draft depth that maximizes expected tokens per second, given measured acceptance rates
// and step times. It has no dependency on the engine.
//
// A plain step is a step without drafts. A cost is a time divided by the recent time of a plain step, because the
// machine's speed drifts.
type Depths struct {
	global        acceptanceStats       // over all requests: the prior of a request with few drafts
	plainTimes    map[int]*measurements // seconds of a plain step, by number of decoding requests
	stepCosts     map[int]curve         // cost of a step by its rows, for each number of decoding requests
	draftCosts    map[int]*measurements // cost of one step of the draft model, by number of drafting requests
	plainSteps    int                   // plain steps so far
	draftRounds   int                   // steps with drafts since the last plain one
	plainStepsDue int                   // plain steps to run next, to measure their time again
}

// acceptanceStats estimates the acceptance rate at each draft position, conditional on all earlier positions being
// accepted. Older observations decay exponentially.
type acceptanceStats struct{ tried, accepted [runtime.MaxDraft]float64 }

// Weights of observations.
const (
	acceptanceDecay = 0.97 // factor on older observations, for each new one at the same position
	priorDrafts     = 2    // weight of the prior, in drafts
	priorRate       = 0.7  // acceptance rate assumed without any observation
)

// add records the drafts of one step.
func (s *acceptanceStats) add(drafted, accepted int) {
	for k := range min(accepted+1, drafted, runtime.MaxDraft) {
		s.tried[k] = s.tried[k]*acceptanceDecay + 1
		s.accepted[k] *= acceptanceDecay
		if k < accepted {
			s.accepted[k]++
		}
	}
}

// rate returns the acceptance rate at position k, smoothed towards a prior.
func (s *acceptanceStats) rate(k int, prior float64) float64 {
	return (s.accepted[k] + priorDrafts*prior) / (s.tried[k] + priorDrafts)
}

// rates returns the acceptance rates of all positions. prior returns the prior at position k, given the rate at the
// previous position.
func (s *acceptanceStats) rates(prior func(k int, previous float64) float64) (rates [runtime.MaxDraft]float64) {
	previous := priorRate
	for k := range rates {
		rates[k] = s.rate(k, prior(k, previous))
		previous = rates[k]
	}
	return rates
}

// measurements holds the most recent measurements of one quantity. Noise only makes a measurement longer, so we use the
// lower quartile.
type measurements struct {
	recent [8]float64
	n      int
}

func (t *measurements) add(v float64) {
	t.recent[t.n%len(t.recent)] = v
	t.n++
}

// addSample adds a measurement to the entry of a key.
func addSample(known map[int]*measurements, key int, v float64) {
	if known[key] == nil {
		known[key] = &measurements{}
	}
	known[key].add(v)
}

// lowerQuartile returns the lower quartile of the measurements, or 0 if there are none.
func (t *measurements) lowerQuartile() float64 {
	if t == nil || t.n == 0 {
		return 0
	}
	known := t.recent
	list := known[:min(t.n, len(known))]
	slices.Sort(list)
	return list[(len(list)-1)/4]
}

// curve maps the number of rows in a step to its cost.
type curve map[int]*measurements

// defaultRowCost is the relative cost that is assumed for each additional row before one is measured.
const defaultRowCost = 0.03

// at estimates the cost of a step with that many rows, by linear interpolation and extrapolation; 0 without
// measurements.
func (c curve) at(rows int) float64 {
	if t, ok := c[rows]; ok || len(c) == 0 {
		return t.lowerQuartile()
	}
	known := slices.Sorted(maps.Keys(c))
	i, _ := slices.BinarySearch(known, rows)
	switch {
	case i == 0:
		return c[known[0]].lowerQuartile()
	case i == len(known):
		first, last := known[0], known[i-1]
		slope := defaultRowCost * c[last].lowerQuartile()
		if i > 1 {
			slope = max(0, (c[last].lowerQuartile()-c[first].lowerQuartile())/float64(last-first))
		}
		return c[last].lowerQuartile() + slope*float64(rows-last)
	}
	low, high := known[i-1], known[i]
	share := float64(rows-low) / float64(high-low)
	return (1-share)*c[low].lowerQuartile() + share*c[high].lowerQuartile()
}

// AddStep records a step without prefill. rows counts the tokens of the decoding requests and their drafts.
func (d *Depths) AddStep(decoding, rows int, took time.Duration) {
	if d.stepCosts == nil {
		d.plainTimes, d.stepCosts = map[int]*measurements{}, map[int]curve{}
	}
	if rows == decoding {
		d.plainSteps++
		addSample(d.plainTimes, decoding, took.Seconds())
		if d.stepCosts[decoding] == nil {
			d.stepCosts[decoding] = curve{decoding: &measurements{}}
			d.stepCosts[decoding][decoding].add(1)
		}
	} else if unit := d.plainTimes[decoding].lowerQuartile(); unit > 0 {
		addSample(d.stepCosts[decoding], rows, took.Seconds()/unit)
	}
}

// AddDraft records the total time of a step's draft steps. decoding counts the requests that decode, requests those of
// them that draft, and steps the draft steps.
func (d *Depths) AddDraft(decoding, requests, steps int, took time.Duration) {
	unit := d.plainTimes[decoding].lowerQuartile()
	if unit == 0 {
		return
	}
	if d.draftCosts == nil {
		d.draftCosts = map[int]*measurements{}
	}
	addSample(d.draftCosts, requests, took.Seconds()/float64(steps)/unit)
}

// stepCost estimates the cost of a step, relative to a plain step of about as many requests; 0 without measurements.
func (d *Depths) stepCost(decoding, rows int) float64 {
	return nearest(d.stepCosts, decoding).at(rows)
}

// nearest returns the value of the key nearest to n; of two equally near keys, the smaller one wins.
func nearest[V any](known map[int]V, n int) (v V) {
	best, found := 0, false
	for k := range known {
		if a, b := abs(k-n), abs(best-n); !found || a < b || a == b && k < best {
			best, found = k, true
		}
	}
	return known[best]
}

func abs(n int) int { return max(n, -n) }

// DepthState holds what depth decisions know about one request. The zero value has no observations.
type DepthState struct {
	acceptance acceptanceStats
	Depth      int // the last decision
	skipped    int // steps without drafts since the last one with drafts
	retryAfter int // number of skipped steps after which to probe
}

// Probing: a request for which drafting does not pay drafts probeDepth tokens now and then. The interval starts at
// initialRetry steps and grows by retryGrowth up to maxRetry.
const (
	initialRetry   = 16
	retryGrowth    = 4
	maxRetry       = 256
	probeDepth     = 2
	probeTimeShare = 0.02 // largest share of time that probes may cost
)

// defaultDraftTime is the assumed time of a draft step before one is measured. It is long relative to the steps of a
// small model, so the first probe of such a model comes late, possibly after the text has ended.
const defaultDraftTime = 500 * time.Microsecond

// DepthRequest is one request that may draft in a step.
type DepthRequest struct {
	State     *DepthState
	MaxTokens int  // upper bound of the depth
	Fixed     bool // the depth is MaxTokens, whatever the measurements say
}

// minGain is the ratio of expected throughput with and without drafts above which drafting pays.
const minGain = 1.02

// minPlainSteps is the number of plain steps before the first drafts. The very first steps are slower than later ones.
const minPlainSteps = 3

// maxCandidates bounds the drafts that are considered for a step.
const maxCandidates = 256

// After maxDraftRounds steps with drafts, plainStepsAfter plain steps follow, so that the measured plain times stay
// current.
const (
	maxDraftRounds  = 128
	plainStepsAfter = 3
)

// Plan sets the depth of each request. decoding is the number of decoding requests in the step, including these.
func (d *Depths) Plan(decoding int, requests []DepthRequest) {
	best := d.bestDepths(decoding, requests)
	if slices.Max(best) == 0 {
		d.draftRounds = 0
	} else if d.draftRounds++; d.draftRounds > maxDraftRounds {
		d.draftRounds, d.plainStepsDue = 0, plainStepsAfter
	}
	if d.plainStepsDue > 0 {
		d.plainStepsDue--
		for i, r := range requests {
			if !r.Fixed {
				best[i] = 0
			}
		}
	}
	interval := d.probeInterval(decoding)
	for i, r := range requests {
		s := r.State
		s.Depth = best[i]
		switch {
		case r.Fixed:
			s.Depth = r.MaxTokens
		case s.Depth > 0:
			s.skipped, s.retryAfter = 0, initialRetry
		default:
			s.skipped++
			s.retryAfter = max(s.retryAfter, initialRetry, interval)
			if s.skipped >= s.retryAfter && r.MaxTokens > 0 && d.stepCost(decoding, decoding) > 0 {
				s.Depth = min(probeDepth, r.MaxTokens)
				s.skipped, s.retryAfter = 0, min(retryGrowth*s.retryAfter, maxRetry)
			}
		}
	}
}

// probeInterval returns the number of steps between probes that limits the cost of failed probes to probeTimeShare.
func (d *Depths) probeInterval(decoding int) int {
	lost := d.stepCost(decoding, decoding+probeDepth) + probeDepth*d.draftCost(decoding, 1) - d.stepCost(decoding,
		decoding)
	return int(min(lost/probeTimeShare, 1<<20))
}

// draftCost estimates the cost of one draft step; 0 if no plain step was measured.
func (d *Depths) draftCost(decoding, requests int) float64 {
	if t := nearest(d.draftCosts, requests).lowerQuartile(); t > 0 {
		return t
	}
	if unit := nearest(d.plainTimes, decoding).lowerQuartile(); unit > 0 {
		return defaultDraftTime.Seconds() / unit
	}
	return 0
}

// bestDepths adds drafts one at a time, the most likely first, and returns the depths with the highest expected
// throughput.
func (d *Depths) bestDepths(decoding int, requests []DepthRequest) []int {
	depth := make([]int, len(requests))
	plain := d.stepCost(decoding, decoding)
	if plain == 0 || d.plainSteps < minPlainSteps {
		return depth // plain steps have to be measured first
	}
	type candidate struct {
		request     int
		probability float64 // that it and all drafts before it are accepted
	}
	var candidates []candidate
	rows, tokens, deepest := decoding, float64(decoding), 0
	draftCost, limit := d.draftCost(decoding, len(requests)), runtime.MaxDraft
	if len(d.draftCosts) == 0 {
		limit = probeDepth
	}
	priors := d.global.rates(func(_ int, before float64) float64 { return before })
	for i, r := range requests {
		probability := 1.0
		rates := r.State.acceptance.rates(func(k int, _ float64) float64 { return priors[k] })
		for k := range min(r.MaxTokens, runtime.MaxDraft) {
			probability *= rates[k]
			if r.Fixed {
				depth[i]++
				rows, tokens, deepest = rows+1, tokens+probability, max(deepest, k+1)
			} else if k < limit {
				candidates = append(candidates, candidate{i, probability})
			}
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(b.probability, a.probability) })
	throughput := func() float64 { return tokens / (d.stepCost(decoding, rows) + draftCost*float64(deepest)) }
	best, take := minGain*throughput(), 0
	tried := slices.Clone(depth)
	for n, c := range candidates[:min(len(candidates), maxCandidates)] {
		tried[c.request]++
		rows, tokens, deepest = rows+1, tokens+c.probability, max(deepest, tried[c.request])
		if rate := throughput(); rate > best {
			best, take = rate, n+1
		}
	}
	for _, c := range candidates[:take] {
		depth[c.request]++
	}
	return depth
}

// MayDraft reports whether a request may draft in the next step.
func (d *Depths) MayDraft(request *DepthState) bool {
	return request.Depth > 0 || request.skipped+1 >= request.retryAfter
}

// AddResult records how many of a request's drafts were accepted.
func (d *Depths) AddResult(request *DepthState, drafted, accepted int) {
	request.acceptance.add(drafted, accepted)
	d.global.add(drafted, accepted)
}
