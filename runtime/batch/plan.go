package batch

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// batchItem is one request's part of a step.
type batchItem struct {
	g          *generation
	rows       int  // tokens to evaluate, without drafts; 0 if sendAhead has enqueued them already
	wantsToken bool // a token is sampled after the last row

	depth          int          // draft depth: most tokens to draft
	drafts         []int32      // drafted tokens, evaluated after rows and verified by the model
	Q              []*mlx.Array // distributions of the drafts, see sample.Request; may be longer than drafts
	firstSampleRow int          // row of forward's hidden states from which the first token is sampled
}

// planStep decides which rows each request evaluates in the next step: one token of each decoding request, and a share
// of the prefill rows for each prompt. Requests whose pictures are not encoded yet are left out. A request with
// retryAlone set is the only one in its step.
func (b *batcher) planStep() []batchItem {
	if i := slices.IndexFunc(b.running, func(g *generation) bool { return g.retryAlone }); i >= 0 {
		g := b.running[i]
		return []batchItem{g.batchItem(min(g.usableRows(), b.prefill.rowLimit(1, 0)))}
	}
	var prompts []*generation
	decoding := 0
	for _, g := range b.running {
		switch {
		case g.pictures.pending():
		case g.prefilling():
			prompts = append(prompts, g)
		default:
			decoding++
		}
	}
	total := b.prefill.rowLimit(len(prompts), decoding)
	needed, capacity := make([]int, len(prompts)), make([]int, len(prompts))
	for i, g := range prompts {
		needed[i], capacity[i] = g.pending(), g.usableRows()
	}
	rowCounts := divideRows(total, needed, capacity)
	plan := make([]batchItem, 0, len(b.running))
	for _, g := range b.running {
		if g.pictures.pending() {
			continue
		}
		rows := g.usableRows()
		if g.prefilling() {
			rows, rowCounts = rowCounts[0], rowCounts[1:]
			if rows == 0 {
				continue
			}
		}
		plan = append(plan, g.batchItem(rows))
	}
	return plan
}

// divideRows divides the prefill rows of a step among prompts, which are in order of admission. needed is the number of
// rows until a prompt's first token, capacity the number that it can use in this step. The oldest prompt gets half of
// the rows, so that it never starves. The rest goes to the prompts with the fewest needed rows first, so that a short
// prompt does not wait for a long one.
func divideRows(rows int, needed, capacity []int) []int {
	counts := make([]int, len(needed))
	order := make([]int, len(needed))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return needed[a] - needed[b] })
	give := func(i, limit int) {
		n := min(capacity[i]-counts[i], limit)
		counts[i] += n
		rows -= n
	}
	if len(needed) > 0 {
		give(0, (rows+1)/2)
	}
	for _, i := range order {
		give(i, rows)
	}
	return counts
}

// usableRows returns how many rows the request can use in the next step: up to the end of its tokens or the next
// snapshot.
func (g *generation) usableRows() int {
	n := g.pending()
	if at := g.seq.Offset(); g.pictures.prompt != nil && at < len(g.request.Prompt) {
		n = min(n, len(g.request.Prompt)-at) // tokens after the prompt have no grid positions
	}
	if len(g.cached.snapshots) > 0 {
		n = min(n, g.cached.snapshots[0]-g.seq.Offset())
	}
	return n
}

func (g *generation) batchItem(rows int) batchItem {
	return batchItem{g: g, rows: rows, wantsToken: rows == g.pending() && g.pooling == nil}
}
