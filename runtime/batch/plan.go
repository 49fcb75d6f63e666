package batch

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// batchItem is one request's part of a step.
type batchItem struct {
	g          *generation
	rows       int  // tokens to evaluate, without drafts; 0 if sendAhead has enqueued them already
	restored   int  // rows that take as long as copying its restored state
	wantsToken bool // a token is sampled after the last row

	depth          int          // draft depth: most tokens to draft
	drafts         []int32      // drafted tokens, evaluated after rows and verified by the model
	Q              []*mlx.Array // distributions of the drafts, see sample.Request; may be longer than drafts
	firstSampleRow int          // row of forward's hidden states from which the first token is sampled

	scoreFrom, scoreTo int // rows, relative to the first one, that predict prompt tokens whose log-probability is wanted
}

// planStep decides which rows each request evaluates in the next step: one token of each decoding request, and a share
// of the prefill rows for each prompt. Requests whose pictures are not encoded yet are left out, and so are prompts
// whose beginning another one evaluates. A request with retryAlone set is the only one in its step.
func (b *batcher) planStep() []batchItem {
	if i := slices.IndexFunc(b.running, func(g *generation) bool { return g.retryAlone }); i >= 0 {
		g := b.running[i]
		return []batchItem{g.batchItem(min(g.usableRows(), b.prefill.rowLimit(1, 0)))}
	}
	b.followLeaders()
	inPrefill, decoding := 0, 0
	for _, g := range b.running {
		switch {
		case g.pictures.pending():
		case g.prefilling():
			inPrefill++
		default:
			decoding++
		}
	}
	prompts := b.prompts()
	items := map[*generation]batchItem{}
	for i, n := range divideRows(b.prefill.rowLimit(inPrefill, decoding), prompts) {
		if n > 0 {
			item := prompts[i].g.batchItem(n)
			item.restored = prompts[i].restored
			items[item.g] = item
		}
	}
	plan := make([]batchItem, 0, len(b.running))
	for _, g := range b.running {
		if g.pictures.pending() {
			continue
		}
		if item, ok := items[g]; ok {
			plan = append(plan, item)
		} else if !g.prefilling() {
			plan = append(plan, g.batchItem(g.usableRows()))
		}
	}
	return plan
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
	return batchItem{g: g, rows: rows, wantsToken: rows == g.pending() && g.pooling == nil && !g.request.PromptOnly}
}
