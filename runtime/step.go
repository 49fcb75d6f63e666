package runtime

import (
	"slices"
	"time"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// How long a step with rows of prompts should take: others wait for it, most of all those who speak. Nobody waits for a prompt
// that is alone but who comes then: it has longer, in multiples of wholeRows, of which kernels make better use.
const (
	soloStepTime   = 3 * time.Second
	promptStepTime = time.Second
	sharedStepTime = 250 * time.Millisecond
	rowMultiple    = 256 // what a CPU kernel unpacks weights once for
)

// Bounds of the rows of prompts in a step, and how many it has before anything was measured.
const (
	minRows     = 32
	initialRows = 128
	maxRows     = 2048
)

// pace is how many rows a second the model evaluates.
type prefillRate float64

// rows are what fits into a time.
func (p prefillRate) rows(d time.Duration) int {
	if p == 0 {
		return initialRows
	}
	return min(max(int(float64(p)*d.Seconds())/minRows*minRows, minRows), maxRows)
}

// saw takes a measurement into account. Steps of few rows tell nothing of many.
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

// stepped is what a step evaluates of a request.
type batchItem struct {
	g          *generation
	rows       int
	wantsToken bool // a token comes of it

	depth          int          // most tokens that may be drafted
	drafts         []int32      // rows beyond those, which the model judges
	q              []*mlx.Array // what each was drawn from, see ask; it may have more than there are drafts
	firstSampleRow int          // of the hidden states, the one that the first token comes from
}

// hears is the hidden states that a request's drafts are made from.
func (b *batcher) neededHiddenStates(g *generation) hiddenStates {
	if g.request.Draft.Mode == DraftOff || g.retryAlone {
		return noHiddenStates
	}
	r := b.drafter.neededHiddenStates()
	if r == lastHiddenState && g.request.Draft.Mode == DraftAuto && !b.depths.mayDraft(&g.draftState) {
		return noHiddenStates
	}
	return r
}

// step runs one forward for the requests at hand. When it fails, each of them has its next one alone, and ends when that fails.
func (b *batcher) step() {
	if b.encodeNextPicture() {
		return
	}
	plan := b.planStep()
	if len(plan) == 0 { // pictures are being decoded
		b.stalled = true
		return
	}
	prompts := b.planDrafts(plan)
	begun, rows := time.Now(), 0
	since := b.lastStepEnd
	if since.IsZero() {
		since = begun
	}
	for _, s := range plan {
		rows += s.rows
	}
	err := b.do(func() error {
		if b.onStep != nil {
			if err := b.onStep(plan); err != nil {
				return err
			}
		}
		proposing := time.Now()
		b.propose(plan)
		drafting := time.Since(proposing)
		hidden := b.forward(plan)
		b.pool(plan, hidden)
		samples := takeSamples(plan)
		defer func() { // what was not read
			for _, a := range samples {
				a.free()
			}
		}()
		if b.sendsAhead && len(plan) == len(b.running) { // else a prompt waits for its rows
			b.sendAhead(plan, samples)
		}
		outcomes := make([]outcome, len(samples))
		for i, a := range samples {
			outcomes[i] = a.read()
		}
		b.applyResults(plan, hidden, outcomes)
		b.catchUpDrafts(plan)
		if b.lastStepEnd = time.Now(); prompts == 0 {
			b.measure(plan, drafting, b.lastStepEnd.Sub(since)-drafting)
		}
		return nil
	})
	if err == nil {
		b.prefillRate.add(rows, time.Since(begun))
	}
	for _, s := range plan {
		switch {
		case s.g.ended: // also where something failed after that
			b.finish(s.g, nil)
		case err != nil:
			b.recoverFrom(s, len(plan) == 1, err)
		default:
			s.g.retryAlone = false
		}
	}
}

// settle hands requests what was said to them, and ends transactions. It runs on the engine's thread.
func (b *batcher) applyResults(plan []batchItem, hidden *mlx.Array, outcomes []outcome) {
	for i := range plan {
		s := &plan[i]
		if !s.wantsToken {
			continue
		}
		o := outcomes[0]
		outcomes = outcomes[1:]
		n := s.g.take(s.drafts, o)
		if len(s.drafts) == 0 {
			continue
		}
		s.g.seq.Commit(n) // what was said last was not evaluated, what was said before the drafts was
		if !s.g.ended {
			b.keepHidden(s.g, hidden, s.firstSampleRow, n)
			b.drafter.finishRound(s.g, o.accepted)
			b.depths.addResult(&s.g.draftState, len(s.drafts), o.accepted)
		}
	}
}

// take gives a request the drafts that were accepted and the token after them, as far as its text does not end before. It gives how many
// tokens it took.
func (g *generation) take(drafts []int32, o outcome) int {
	g.stats.TargetSteps++
	for i, token := range drafts[:o.accepted] {
		g.stats.Drafted++
		g.stats.Accepted++
		if g.ended = g.emit(token, o.logProb(i)); g.ended {
			return i + 1
		}
	}
	g.stats.Drafted += len(drafts) - o.accepted
	g.ended = g.emit(o.next, o.logProb(o.accepted)) || g.emitForced()
	return o.accepted + 1
}

// keepRows keeps the hidden states that a request's next tokens are drafted from: of n rows from the first one on, whose last one is that
// of the last position. It runs on the engine's thread.
func (b *batcher) keepHidden(g *generation, hidden *mlx.Array, first, n int) {
	switch b.neededHiddenStates(g) {
	case noHiddenStates:
		return
	case lastHiddenState:
		first, n = first+n-1, 1
		g.draftInputs.hidden.free()
	}
	if n < hidden.Dim(0) {
		hidden = mlx.SliceAxis(hidden, 0, mlx.Range(first, first+n))
	}
	g.draftInputs.hidden.add(hidden, g.seq.Offset())
}

// follow lets the draft read on where the model has read a prompt. It runs on the engine's thread.
func (b *batcher) catchUpDrafts(plan []batchItem) {
	var generations []*generation
	for _, s := range plan {
		if g := s.g; !g.ended && !g.retryAlone && g.request.Draft.Mode != DraftOff {
			generations = append(generations, g)
		}
	}
	b.drafter.catchUp(generations)
}

// measure notes how long a step without prompts took to draft, and all the rest since the step before it.
func (b *batcher) measure(plan []batchItem, drafting, running time.Duration) {
	rows, drafted, deepest := 0, 0, 0
	for _, s := range plan {
		if s.rows == 0 {
			return // the device had begun before
		}
		rows += s.rows + len(s.drafts)
		if n := len(s.drafts); n > 0 {
			drafted, deepest = drafted+1, max(deepest, n)
		}
	}
	b.depths.addStep(len(plan), rows, running)
	if drafted > 0 {
		b.depths.addDraft(len(plan), drafted, deepest, drafting)
	}
}

// deepen decides how many tokens each request of a step may draft: never so many that with the one after them they exceed what may still
// come. It gives the number of prompts in the step.
func (b *batcher) planDrafts(plan []batchItem) (prompts int) {
	var items []*batchItem
	var requests []draftRequest
	for i := range plan {
		s := &plan[i]
		g := s.g
		if g.prefilling() {
			prompts++
		}
		if g.request.Draft.Mode == DraftOff || g.retryAlone || g.prefilling() || s.rows != 1 || !s.wantsToken {
			continue
		}
		w := draftRequest{draftState: &g.draftState, maxTokens: min(g.budget-1, MaxDraft), fixed: g.request.Draft.Mode == DraftFixed}
		if w.fixed {
			w.maxTokens = min(w.maxTokens, g.request.Draft.N)
		}
		if w.maxTokens > 0 {
			items, requests = append(items, s), append(requests, w)
		}
	}
	if len(items) == 0 {
		return prompts
	}
	b.depths.plan(len(plan)-prompts, requests)
	for _, s := range items {
		s.depth = s.g.draftState.depth
	}
	return prompts
}

// compose decides who gets how many rows: a token for each request that has begun to speak, and shares of a chunk for prompts. One that has
// to be alone is. Those whose pictures are not decoded wait.
func (b *batcher) planStep() []batchItem {
	if i := slices.IndexFunc(b.running, func(g *generation) bool { return g.retryAlone }); i >= 0 {
		g := b.running[i]
		return []batchItem{g.batchItem(min(g.usableRows(), b.rowLimit(1, 0)))}
	}
	var prompts []*generation
	decoding := 0
	for _, g := range b.running {
		switch {
		case g.awaitsPictures():
		case g.prefilling():
			prompts = append(prompts, g)
		default:
			decoding++
		}
	}
	left := b.rowLimit(len(prompts), decoding)
	needed, capacity := make([]int, len(prompts)), make([]int, len(prompts))
	for i, g := range prompts {
		needed[i], capacity[i] = g.pending(), g.usableRows()
	}
	rowCounts := divideRows(left, needed, capacity)
	plan := make([]batchItem, 0, len(b.running))
	for _, g := range b.running {
		if g.awaitsPictures() {
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

// shareOut shares a step's rows among prompts, which are in the order in which they came, need so many rows until they speak, and have room for so
// many now. Half of the rows are for whoever came first, so that nobody waits for ever; the others go to those who need least, so that a short
// prompt does not wait for a long one, nor all for each other.
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

// rows is how many rows of so many prompts a step has, beside requests that speak.
func (b *batcher) rowLimit(prompts, decoding int) int {
	switch {
	case b.chunk > 0:
		return b.chunk
	case decoding > 0:
		return b.prefillRate.rows(sharedStepTime)
	case prompts > 1:
		return b.prefillRate.rows(promptStepTime)
	}
	return max(b.prefillRate.rows(soloStepTime)/rowMultiple, 1) * rowMultiple
}

// room is how many rows the request can use in the next step: up to the end of its tokens or to a point where its state is kept.
func (g *generation) usableRows() int {
	n := g.pending()
	if at := g.seq.Offset(); g.pictures != nil && at < len(g.request.Prompt) {
		n = min(n, len(g.request.Prompt)-at) // what follows has no place among pictures
	}
	if len(g.snapshots) > 0 {
		n = min(n, g.snapshots[0]-g.seq.Offset())
	}
	return n
}

func (g *generation) batchItem(rows int) batchItem {
	return batchItem{g: g, rows: rows, wantsToken: rows == g.pending() && g.pooling == nil}
}

// forward evaluates a plan: it begins to choose for each request that is to. It gives the hidden states of the rows that were wanted. It runs
// on the engine's thread.
func (b *batcher) forward(plan []batchItem) (hidden *mlx.Array) {
	var parts []nn.Part
	var evaluated []*batchItem
	row := 0
	for i := range plan {
		s := &plan[i]
		if s.rows == 0 {
			continue
		}
		p := s.g.part(s.rows, s.drafts)
		p.All = len(s.drafts) > 0 || b.neededHiddenStates(s.g) == allHiddenStates || s.g.pooling.needsAllRows()
		wanted := 1
		if p.All {
			wanted = len(p.Tokens)
		}
		s.firstSampleRow = row + wanted - 1 - len(s.drafts)
		row += wanted
		if len(s.drafts) > 0 {
			s.g.seq.Begin()
		}
		parts, evaluated = append(parts, p), append(evaluated, s)
	}
	if len(parts) > 0 {
		hidden = b.forwards.Forward(parts...)
		b.sample(evaluated, hidden)
	}
	return hidden
}

// takeAnswers takes the answer of each request that is to choose, in order.
func takeSamples(plan []batchItem) (samples []*pendingSample) {
	for _, s := range plan {
		if s.wantsToken {
			samples = append(samples, s.g.sample)
			s.g.sample = nil
		}
	}
	return samples
}

// sendAhead builds the next step upon tokens that are not yet read, so that a GPU does not wait for the host while it is
// told what to do. For a token that ends its stream that was for nothing. Penalties, formats and drafts need a token's value first, and who
// still reads a prompt wants to be a part of the next step.
func (b *batcher) sendAhead(plan []batchItem, samples []*pendingSample) {
	var parts []nn.Part
	next := make([]*batchItem, len(plan))
	for i, s := range plan {
		if !s.wantsToken || s.g.budget <= 1 || s.g.retryAlone || s.g.sampler.penalizes() || s.g.constraint != nil || b.mayDraft(s) {
			return
		}
		next[i] = &batchItem{g: s.g, rows: 1, wantsToken: true, firstSampleRow: i}
		parts = append(parts, nn.Part{Seq: s.g.seq, Text: len(s.g.request.Prompt), Shift: s.g.pictures.generatedShift()})
	}
	b.sample(next, b.l.model.Forward(nn.NextBatch(sampledTokens(samples), parts...)))
}

// drafts tells whether a request of a step drafts in it, so that nobody knows yet where it will stand, or may draft in the next one.
func (b *batcher) mayDraft(s batchItem) bool {
	switch {
	case len(s.drafts) > 0:
		return true
	case s.g.request.Draft.Mode == DraftOff || s.g.budget <= 2:
		return false
	}
	return s.g.request.Draft.Mode == DraftFixed || b.depths.mayDraft(&s.g.draftState)
}

// choose begins to choose the tokens of those that are to have one, from the hidden states of a plan's wanted rows.
func (b *batcher) sample(plan []*batchItem, hidden *mlx.Array) {
	var rows []int32
	var generations []*generation
	var requests []sampleRequest
	for _, s := range plan {
		if len(s.drafts) == 0 { // those of others depend on what is accepted
			n := 1
			if b.neededHiddenStates(s.g) == allHiddenStates {
				n = s.rows
			}
			b.keepHidden(s.g, hidden, s.firstSampleRow+1-n, n)
		}
		if !s.wantsToken {
			continue
		}
		for i := range len(s.drafts) + 1 {
			rows = append(rows, int32(s.firstSampleRow+i))
		}
		generations, requests = append(generations, s.g), append(requests, s.g.sampleRequest(s.drafts, s.q))
	}
	var wanted []*mlx.Array
	if len(generations) > 0 {
		if len(rows) < hidden.Dim(0) {
			hidden = mlx.Take(hidden, mlx.FromSlice(b.l.thread, rows), 0)
		}
		result := sampleTokens(b.l.model.Head(hidden), requests)
		for i, g := range generations {
			g.sample = &pendingSample{result, i}
		}
		wanted = result.arrays()
	}
	if len(generations) < len(plan) { // of a part of a prompt, nothing else asks for the state
		for _, s := range plan {
			wanted = append(wanted, s.g.seq.State()...)
		}
	}
	mlx.AsyncEval(wanted...)
	b.takeSnapshots(plan)
	if len(generations) == 0 {
		mlx.Eval(wanted...) // so that the time of the step is known
	}
}

// keepPoints copies the state of sequences that have come to a point of their prompts.
func (b *batcher) takeSnapshots(plan []*batchItem) {
	for _, s := range plan {
		g := s.g
		if len(g.snapshots) == 0 || g.seq.Offset() != g.snapshots[0] {
			continue
		}
		g.session.Snapshot(g.snapshots[0] != g.session.Branch())
		g.snapshots = g.snapshots[1:]
	}
}

// failed brings a request back to where a step that failed began: it starts over from what the prefix cache has, and then runs alone. One
// that was alone ends; but if something was drafted, that may be to blame.
func (b *batcher) recoverFrom(s batchItem, alone bool, err error) {
	g := s.g
	fatal := alone && (g.retryAlone || b.neededHiddenStates(g) == noHiddenStates && s.depth == 0)
	doErr := b.do(func() error {
		b.forwards.Forget()
		g.restart()
		if !fatal {
			g.startSession()
		}
		return nil
	})
	switch {
	case fatal:
		b.finish(g, err)
	case doErr != nil:
		b.finish(g, doErr)
	default:
		g.retryAlone = true
	}
}

// abandon gives up the sequence's state, which may be of any position, and with it the place in the prefix cache: all tokens so far are to
// be evaluated again. It runs on the engine's thread.
func (g *generation) restart() {
	if g.session != nil {
		g.session.Leave()
		g.session = nil
	}
	g.dropState()
}

// forget gives up the sequence, and a token that was chosen and not read: it is chosen again.
func (g *generation) dropState() {
	g.sample.free()
	g.sample = nil
	g.seq.Free()
	g.draftInputs.free()
	g.pooling.reset()
	g.sampler.position = uint64(len(g.tokens) - len(g.request.Prompt))
}
