package runtime

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// depths decides how many tokens requests draft: what promises most tokens in a second, by how many of their drafts were accepted
// and by how long steps took. It knows no engine.
type depthController struct {
	global        acceptanceStats       // of all requests: what is expected of one that has drafted little
	plainTimes    map[int]*measurements // seconds of a step without drafts, by how many requests speak
	stepCosts     map[int]curve         // what a step takes, in times of one without drafts, by how many requests speak
	draftCosts    map[int]*measurements // what one step of the draft takes, in the same, by how many requests draft
	plainSteps    int                   // steps without drafts
	draftRounds   int                   // with drafts since a step had none
	plainStepsDue int                   // further steps that have none, to see again what they take
}

// luck counts drafts by their place in a step: those whose predecessors were accepted, and of them those that were, too. Old ones count
// less.
type acceptanceStats struct{ tried, accepted [MaxDraft]float64 }

// Weights of what was seen.
const (
	acceptanceDecay = 0.97 // at each further draft of its place
	priorDrafts     = 2    // drafts that what is expected counts for
	priorRate       = 0.7  // what is expected before anything was seen
)

// saw counts the drafts of a step.
func (s *acceptanceStats) add(drafted, accepted int) {
	for k := range min(accepted+1, drafted, MaxDraft) {
		s.tried[k] = s.tried[k]*acceptanceDecay + 1
		s.accepted[k] *= acceptanceDecay
		if k < accepted {
			s.accepted[k]++
		}
	}
}

// rate is the expected share at a place, where before is that of the place before it.
func (s *acceptanceStats) rate(k int, previous float64) float64 {
	return (s.accepted[k] + priorDrafts*previous) / (s.tried[k] + priorDrafts)
}

// rates are the shares of all places.
func (s *acceptanceStats) rates(prior func(k int, previous float64) float64) (rates [MaxDraft]float64) {
	previous := priorRate
	for k := range rates {
		rates[k] = s.rate(k, prior(k, previous))
		previous = rates[k]
	}
	return rates
}

// times are the last measurements of one thing. What disturbs them makes some of them longer, the first ones most of all. What is slow for a
// while is so for everything: what steps with drafts take is therefore measured by those without that were last seen.
type measurements struct {
	recent [8]float64
	n      int
}

func (t *measurements) add(v float64) {
	t.recent[t.n%len(t.recent)] = v
	t.n++
}

// added adds a measurement to an entry.
func addSample(known map[int]*measurements, key int, v float64) {
	if known[key] == nil {
		known[key] = &measurements{}
	}
	known[key].add(v)
}

// typical is their lower quartile; 0 without any.
func (t *measurements) lowerQuartile() float64 {
	if t == nil || t.n == 0 {
		return 0
	}
	known := t.recent
	list := known[:min(t.n, len(known))]
	slices.Sort(list)
	return list[(len(list)-1)/4]
}

// curve is what steps take, by rows.
type curve map[int]*measurements

// rowCosts is what a row more is expected to cost before one was tried, as a share of the step.
const defaultRowCost = 0.03

// at estimates what a step of so many rows takes; 0 where nothing is known.
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

// stepped notes a step of requests that speak.
func (d *depthController) addStep(decoding, rows int, took time.Duration) {
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

// drafted notes what it took to draft for so many of the requests that speak, in so many steps.
func (d *depthController) addDraft(decoding, requests, steps int, took time.Duration) {
	unit := d.plainTimes[decoding].lowerQuartile()
	if unit == 0 {
		return
	}
	if d.draftCosts == nil {
		d.draftCosts = map[int]*measurements{}
	}
	addSample(d.draftCosts, requests, took.Seconds()/float64(steps)/unit)
}

// step estimates what a step takes, in times of one without drafts of about as many requests; 0 where nothing is known.
func (d *depthController) stepCost(decoding, rows int) float64 {
	return nearest(d.stepCosts, decoding).at(rows)
}

// nearest is what is known of the number that comes closest.
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

// outlook is what a request's drafts are decided by. The zero value has seen nothing.
type draftState struct {
	acceptance acceptanceStats
	depth      int // that was decided last
	skipped    int // steps without a draft
	retryAfter int // idle steps after which one is tried
}

// How long those wait whose drafts do not pay, and how much they try then.
const (
	initialRetry   = 16
	retryGrowth    = 4
	maxRetry       = 256
	probeDepth     = 2
	probeTimeShare = 0.02 // of the time may go into trying
)

// draftAtOnce is what a step of the draft is expected to take before one was seen. A small model speaks thousands of tokens in a second, and
// waits for a first try longer than its text may be.
const defaultDraftTime = 500 * time.Microsecond

// wish is what a request may draft.
type draftRequest struct {
	*draftState
	maxTokens int // tokens
	fixed     bool
}

// Drafting must promise so much more than not to.
const minGain = 1.02

// leastSeen is how many steps without drafts come before the first one with some: the first steps of all take longer.
const minPlainSteps = 3

// mostRowsDrafted bounds the rows of a step that is being planned.
const maxCandidates = 256

// After so many rounds with drafts come steps without, which nobody else measures: what they took long ago may not hold any more.
const (
	maxDraftRounds  = 128
	plainStepsAfter = 3
)

// plan decides the depth of each wish, beside so many requests that speak, these included.
func (d *depthController) plan(decoding int, requests []draftRequest) {
	best := d.bestDepths(decoding, requests)
	if slices.Max(best) == 0 {
		d.draftRounds = 0
	} else if d.draftRounds++; d.draftRounds > maxDraftRounds {
		d.draftRounds, d.plainStepsDue = 0, plainStepsAfter
	}
	if d.plainStepsDue > 0 {
		d.plainStepsDue--
		for i, r := range requests {
			if !r.fixed {
				best[i] = 0
			}
		}
	}
	interval := d.probeInterval(decoding)
	for i, r := range requests {
		r.depth = best[i]
		switch {
		case r.fixed:
			r.depth = r.maxTokens
		case r.depth > 0:
			r.skipped, r.retryAfter = 0, initialRetry
		default:
			r.skipped++
			r.retryAfter = max(r.retryAfter, initialRetry, interval)
			if r.skipped >= r.retryAfter && r.maxTokens > 0 && d.stepCost(decoding, decoding) > 0 {
				r.depth = min(probeDepth, r.maxTokens)
				r.skipped, r.retryAfter = 0, min(retryGrowth*r.retryAfter, maxRetry)
			}
		}
	}
}

// patience is how many steps make up for a try that is in vain.
func (d *depthController) probeInterval(decoding int) int {
	lost := d.stepCost(decoding, decoding+probeDepth) + probeDepth*d.draftCost(decoding, 1) - d.stepCost(decoding, decoding)
	return int(min(lost/probeTimeShare, 1<<20))
}

// drafting estimates what a step of the draft takes for so many requests, in times of a step without drafts; 0 where nothing is known of
// those.
func (d *depthController) draftCost(decoding, requests int) float64 {
	if t := nearest(d.draftCosts, requests).lowerQuartile(); t > 0 {
		return t
	}
	if unit := nearest(d.plainTimes, decoding).lowerQuartile(); unit > 0 {
		return defaultDraftTime.Seconds() / unit
	}
	return 0
}

// best adds drafts one by one, the likeliest first, and takes the number of them that promises most.
func (d *depthController) bestDepths(decoding int, requests []draftRequest) []int {
	depth := make([]int, len(requests))
	plain := d.stepCost(decoding, decoding)
	if plain == 0 || d.plainSteps < minPlainSteps {
		return depth // steps without drafts tell first
	}
	type candidate struct {
		request     int
		probability float64 // that it and all before it are accepted
	}
	var candidates []candidate
	rows, tokens, deepest := decoding, float64(decoding), 0
	draftCost, limit := d.draftCost(decoding, len(requests)), MaxDraft
	if len(d.draftCosts) == 0 {
		limit = probeDepth
	}
	priors := d.global.rates(func(_ int, before float64) float64 { return before })
	for i, r := range requests {
		probability := 1.0
		rates := r.acceptance.rates(func(k int, _ float64) float64 { return priors[k] })
		for k := range min(r.maxTokens, MaxDraft) {
			probability *= rates[k]
			if r.fixed {
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

// due tells whether a request may draft in the next step.
func (d *depthController) mayDraft(request *draftState) bool {
	return request.depth > 0 || request.skipped+1 >= request.retryAfter
}

// judged counts what became of a request's drafts.
func (d *depthController) addResult(request *draftState, drafted, accepted int) {
	request.acceptance.add(drafted, accepted)
	d.global.add(drafted, accepted)
}
