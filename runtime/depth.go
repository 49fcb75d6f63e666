package runtime

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// depths decides how many tokens requests draft: what promises most tokens in a second, by how many of their drafts were accepted
// and by how long steps took. It knows no engine.
type depths struct {
	all    luck           // of all requests: what is expected of one that has drafted little
	plain  map[int]*times // seconds of a step without drafts, by how many requests speak
	steps  map[int]curve  // what a step takes, in times of one without drafts, by how many requests speak
	draft  map[int]*times // what one step of the draft takes, in the same, by how many requests draft
	seen   int            // steps without drafts
	rounds int            // with drafts since a step had none
	rest   int            // further steps that have none, to see again what they take
}

// luck counts drafts by their place in a step: those whose predecessors were accepted, and of them those that were, too. Old ones count
// less.
type luck struct{ tries, hits [MaxDraft]float64 }

// Weights of what was seen.
const (
	luckFades  = 0.97 // at each further draft of its place
	luckPrior  = 2    // drafts that what is expected counts for
	luckAtOnce = 0.7  // what is expected before anything was seen
)

// saw counts the drafts of a step.
func (l *luck) saw(drafted, accepted int) {
	for k := range min(accepted+1, drafted, MaxDraft) {
		l.tries[k] = l.tries[k]*luckFades + 1
		l.hits[k] *= luckFades
		if k < accepted {
			l.hits[k]++
		}
	}
}

// rate is the expected share at a place, where before is that of the place before it.
func (l *luck) rate(k int, before float64) float64 {
	return (l.hits[k] + luckPrior*before) / (l.tries[k] + luckPrior)
}

// rates are the shares of all places.
func (l *luck) rates(expected func(k int, before float64) float64) (rates [MaxDraft]float64) {
	before := luckAtOnce
	for k := range rates {
		rates[k] = l.rate(k, expected(k, before))
		before = rates[k]
	}
	return rates
}

// times are the last measurements of one thing. What disturbs them makes some of them longer, the first ones most of all. What is slow for a
// while is so for everything: what steps with drafts take is therefore measured by those without that were last seen.
type times struct {
	last [8]float64
	n    int
}

func (t *times) add(v float64) {
	t.last[t.n%len(t.last)] = v
	t.n++
}

// added adds a measurement to an entry.
func added(known map[int]*times, key int, v float64) {
	if known[key] == nil {
		known[key] = &times{}
	}
	known[key].add(v)
}

// typical is their lower quartile; 0 without any.
func (t *times) typical() float64 {
	if t == nil || t.n == 0 {
		return 0
	}
	known := t.last
	list := known[:min(t.n, len(known))]
	slices.Sort(list)
	return list[(len(list)-1)/4]
}

// curve is what steps take, by rows.
type curve map[int]*times

// rowCosts is what a row more is expected to cost before one was tried, as a share of the step.
const rowCosts = 0.03

// at estimates what a step of so many rows takes; 0 where nothing is known.
func (c curve) at(rows int) float64 {
	if t, ok := c[rows]; ok || len(c) == 0 {
		return t.typical()
	}
	known := slices.Sorted(maps.Keys(c))
	i, _ := slices.BinarySearch(known, rows)
	switch {
	case i == 0:
		return c[known[0]].typical()
	case i == len(known):
		first, last := known[0], known[i-1]
		slope := rowCosts * c[last].typical()
		if i > 1 {
			slope = max(0, (c[last].typical()-c[first].typical())/float64(last-first))
		}
		return c[last].typical() + slope*float64(rows-last)
	}
	low, high := known[i-1], known[i]
	share := float64(rows-low) / float64(high-low)
	return (1-share)*c[low].typical() + share*c[high].typical()
}

// stepped notes a step of requests that speak.
func (d *depths) stepped(speaking, rows int, took time.Duration) {
	if d.steps == nil {
		d.plain, d.steps = map[int]*times{}, map[int]curve{}
	}
	if rows == speaking {
		d.seen++
		added(d.plain, speaking, took.Seconds())
		if d.steps[speaking] == nil {
			d.steps[speaking] = curve{speaking: &times{}}
			d.steps[speaking][speaking].add(1)
		}
	} else if unit := d.plain[speaking].typical(); unit > 0 {
		added(d.steps[speaking], rows, took.Seconds()/unit)
	}
}

// drafted notes what it took to draft for so many of the requests that speak, in so many steps.
func (d *depths) drafted(speaking, requests, steps int, took time.Duration) {
	unit := d.plain[speaking].typical()
	if unit == 0 {
		return
	}
	if d.draft == nil {
		d.draft = map[int]*times{}
	}
	added(d.draft, requests, took.Seconds()/float64(steps)/unit)
}

// step estimates what a step takes, in times of one without drafts of about as many requests; 0 where nothing is known.
func (d *depths) step(speaking, rows int) float64 { return nearest(d.steps, speaking).at(rows) }

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
type outlook struct {
	luck  luck
	depth int // that was decided last
	idle  int // steps without a draft
	wait  int // idle steps after which one is tried
}

// How long those wait whose drafts do not pay, and how much they try then.
const (
	firstWait = 16
	waitGrows = 4
	longWait  = 256
	tryDepth  = 2
	tryShare  = 0.02 // of the time may go into trying
)

// draftAtOnce is what a step of the draft is expected to take before one was seen. A small model speaks thousands of tokens in a second, and
// waits for a first try longer than its text may be.
const draftAtOnce = 500 * time.Microsecond

// wish is what a request may draft.
type wish struct {
	*outlook
	most  int // tokens
	fixed bool
}

// Drafting must promise so much more than not to.
const drafterGain = 1.02

// leastSeen is how many steps without drafts come before the first one with some: the first steps of all take longer.
const leastSeen = 3

// mostRowsDrafted bounds the rows of a step that is being planned.
const mostRowsDrafted = 256

// After so many rounds with drafts come steps without, which nobody else measures: what they took long ago may not hold any more.
const (
	roundsAtMost = 128
	plainAgain   = 3
)

// plan decides the depth of each wish, beside so many requests that speak, these included.
func (d *depths) plan(speaking int, wishes []wish) {
	best := d.best(speaking, wishes)
	if slices.Max(best) == 0 {
		d.rounds = 0
	} else if d.rounds++; d.rounds > roundsAtMost {
		d.rounds, d.rest = 0, plainAgain
	}
	if d.rest > 0 {
		d.rest--
		for i, w := range wishes {
			if !w.fixed {
				best[i] = 0
			}
		}
	}
	patience := d.patience(speaking)
	for i, w := range wishes {
		w.depth = best[i]
		switch {
		case w.fixed:
			w.depth = w.most
		case w.depth > 0:
			w.idle, w.wait = 0, firstWait
		default:
			w.idle++
			w.wait = max(w.wait, firstWait, patience)
			if w.idle >= w.wait && w.most > 0 && d.step(speaking, speaking) > 0 {
				w.depth = min(tryDepth, w.most)
				w.idle, w.wait = 0, min(waitGrows*w.wait, longWait)
			}
		}
	}
}

// patience is how many steps make up for a try that is in vain.
func (d *depths) patience(speaking int) int {
	lost := d.step(speaking, speaking+tryDepth) + tryDepth*d.drafting(speaking, 1) - d.step(speaking, speaking)
	return int(min(lost/tryShare, 1<<20))
}

// drafting estimates what a step of the draft takes for so many requests, in times of a step without drafts; 0 where nothing is known of
// those.
func (d *depths) drafting(speaking, requests int) float64 {
	if t := nearest(d.draft, requests).typical(); t > 0 {
		return t
	}
	if unit := nearest(d.plain, speaking).typical(); unit > 0 {
		return draftAtOnce.Seconds() / unit
	}
	return 0
}

// best adds drafts one by one, the likeliest first, and takes the number of them that promises most.
func (d *depths) best(speaking int, wishes []wish) []int {
	depth := make([]int, len(wishes))
	plain := d.step(speaking, speaking)
	if plain == 0 || d.seen < leastSeen {
		return depth // steps without drafts tell first
	}
	type candidate struct {
		who    int
		chance float64 // that it and all before it are accepted
	}
	var all []candidate
	rows, tokens, deepest := speaking, float64(speaking), 0
	drafting, most := d.drafting(speaking, len(wishes)), MaxDraft
	if len(d.draft) == 0 {
		most = tryDepth
	}
	general := d.all.rates(func(_ int, before float64) float64 { return before })
	for i, w := range wishes {
		likely := 1.0
		rates := w.luck.rates(func(k int, _ float64) float64 { return general[k] })
		for k := range min(w.most, MaxDraft) {
			likely *= rates[k]
			if w.fixed {
				depth[i]++
				rows, tokens, deepest = rows+1, tokens+likely, max(deepest, k+1)
			} else if k < most {
				all = append(all, candidate{i, likely})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.chance, a.chance) })
	rate := func() float64 { return tokens / (d.step(speaking, rows) + drafting*float64(deepest)) }
	top, take := drafterGain*rate(), 0
	tried := slices.Clone(depth)
	for n, c := range all[:min(len(all), mostRowsDrafted)] {
		tried[c.who]++
		rows, tokens, deepest = rows+1, tokens+c.chance, max(deepest, tried[c.who])
		if r := rate(); r > top {
			top, take = r, n+1
		}
	}
	for _, c := range all[:take] {
		depth[c.who]++
	}
	return depth
}

// due tells whether a request may draft in the next step.
func (d *depths) due(o *outlook) bool { return o.depth > 0 || o.idle+1 >= o.wait }

// judged counts what became of a request's drafts.
func (d *depths) judged(c *outlook, drafted, accepted int) {
	c.luck.saw(drafted, accepted)
	d.all.saw(drafted, accepted)
}
