package batch

import (
	"cmp"
	"slices"
	"time"
)

// priorityStep is the waiting time that one level of priority is worth. Because priority only shifts a request's place
// in the order of arrival, a request of low priority waits longer but is never starved.
const priorityStep = 10 * time.Second

// rank orders requests by arrival and priority: a request with a lower rank is admitted and prefilled earlier, and
// preempted later.
func (g *generation) rank() time.Time {
	return g.started.Add(-time.Duration(g.request.Priority) * priorityStep)
}

func compareRanks(a, b *generation) int { return a.rank().Compare(b.rank()) }

// prompt is a request in prefill.
type prompt struct {
	g        *generation
	rank     time.Time
	needed   int // rows until its first token, or until the first token of a request that waits for it
	capacity int // rows that it can use in this step
	restored int // rows that take as long as copying restored state, which its first step does
}

// prompts returns the requests in prefill that do not wait for another one, by rank. A request that others wait for has
// the lowest rank among them, and needs as many rows as the one that is done first.
func (b *batcher) prompts() []prompt {
	byRequest := map[*generation]*prompt{}
	for _, g := range b.running {
		if g.prefilling() && !g.pictures.pending() {
			byRequest[g] = &prompt{g: g, rank: g.rank(), needed: g.pending(), capacity: g.usableRows(),
				restored: b.prefill.rate.copying(g.seq.Restored())}
		}
	}
	for _, g := range slices.Backward(b.running) { // leaders come before those that wait for them
		p, leader := byRequest[g], byRequest[g.leader]
		if p == nil || leader == nil {
			continue
		}
		if p.rank.Before(leader.rank) {
			leader.rank = p.rank
		}
		leader.needed = min(leader.needed, p.needed-(leader.g.seq.Offset()-g.seq.Offset()))
	}
	var all []prompt
	for _, g := range b.running {
		if p := byRequest[g]; p != nil && g.leader == nil {
			all = append(all, *p)
		}
	}
	slices.SortStableFunc(all, func(a, b prompt) int { return a.rank.Compare(b.rank) })
	return all
}

// divideRows divides the prefill rows of a step among prompts in order of rank. The first one gets half of the rows, so
// that it never starves. The rest goes to the prompts with the fewest needed rows first, so that a short prompt does
// not wait for a long one. Restored state counts as rows, so that many cached prompts do not delay the streams; the
// first one restores any amount.
func divideRows(rows int, prompts []prompt) []int {
	counts, order := make([]int, len(prompts)), make([]int, len(prompts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(prompts[a].needed, prompts[b].needed) })
	give := func(i, limit int) {
		if counts[i] == 0 && i > 0 {
			limit -= prompts[i].restored
		}
		n := max(min(prompts[i].capacity-counts[i], limit), 0)
		if counts[i] == 0 && n > 0 {
			rows -= prompts[i].restored
		}
		counts[i] += n
		rows -= n
	}
	if len(prompts) > 0 {
		give(0, (rows+1)/2)
	}
	for _, i := range order {
		give(i, rows)
	}
	return counts
}
