package runtime

import (
	"slices"
	"time"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Target durations of a step that includes prefill, by the other requests that it delays: sharedStepTime if some are
// decoding, promptStepTime if there are only prompts, soloStepTime if there are none. A solo step delays only requests
// that arrive during it. A row is one token of a forward pass. The number of rows in a solo step is a multiple of
// rowMultiple, which suits the kernels.
const (
	soloStepTime   = 3 * time.Second
	promptStepTime = time.Second
	sharedStepTime = 250 * time.Millisecond
	rowMultiple    = 256 // a CPU kernel unpacks a tile of weights once for this many rows
)

// Bounds of the prefill rows in a step, and their number before the first measurement.
const (
	minRows     = 32
	initialRows = 128
	maxRows     = 2048
)

// prefillRate is the measured throughput in rows per second, smoothed over recent steps; 0 before the first
// measurement.
type prefillRate float64

// rows returns how many rows a step of duration d can evaluate.
func (p prefillRate) rows(d time.Duration) int {
	if p == 0 {
		return initialRows
	}
	return min(max(int(float64(p)*d.Seconds())/minRows*minRows, minRows), maxRows)
}

// add records a step. Steps with few rows are ignored: they do not predict the throughput of larger ones.
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

// batchItem is one request's part of a step.
type batchItem struct {
	g          *generation
	rows       int  // tokens to evaluate, without drafts; 0 if sendAhead has enqueued them already
	wantsToken bool // a token is sampled after the last row

	depth          int          // draft depth: most tokens to draft
	drafts         []int32      // drafted tokens, evaluated after rows and verified by the model
	q              []*mlx.Array // distributions of the drafts, see sampleRequest; may be longer than drafts
	firstSampleRow int          // row of forward's hidden states from which the first token is sampled
}

// neededHiddenStates returns which hidden states of the request's rows its drafts need.
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

// step encodes a picture if one is ready, and otherwise runs one forward pass for the running requests. It sets stalled
// if there is nothing to run. If the pass fails, each of its requests runs its next step alone and without drafts, and
// ends if that fails too.
func (b *batcher) step() {
	if b.encodeNextPicture() {
		return
	}
	plan := b.planStep()
	if len(plan) == 0 { // all running requests wait for their pictures
		b.stalled = true
		return
	}
	prompts := b.planDrafts(plan)
	start, rows := time.Now(), 0
	since := b.lastStepEnd
	if since.IsZero() {
		since = start
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
		draftStart := time.Now()
		b.propose(plan)
		drafting := time.Since(draftStart)
		hidden := b.forward(plan)
		b.pool(plan, hidden)
		samples := takeSamples(plan)
		defer func() { // samples that were not read, after an error
			for _, a := range samples {
				a.free()
			}
		}()
		if b.sendsAhead && len(plan) == len(b.running) { // otherwise a request that this step left out may join the next
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
		b.prefillRate.add(rows, time.Since(start))
	}
	for _, s := range plan {
		switch {
		case s.g.ended: // even if the step failed after that
			b.finish(s.g, nil)
		case err != nil:
			b.recoverFrom(s, len(plan) == 1, err)
		default:
			s.g.retryAlone = false
		}
	}
}

// applyResults appends the sampled tokens to their requests. For requests with drafts it also commits the accepted rows
// to the KV cache and drops the rest. It runs on the engine's thread.
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
		// Keep the rows of the token before the drafts and of all but the last of the n tokens.
		s.g.seq.Commit(n)
		if !s.g.ended {
			b.keepHidden(s.g, hidden, s.firstSampleRow, n)
			b.drafter.finishRound(s.g, o.accepted)
			b.depths.addResult(&s.g.draftState, len(s.drafts), o.accepted)
		}
	}
}

// take appends the accepted drafts and the token after them to the request, until its text ends, and returns how many
// of them it appended. Tokens that the format forces next are appended too, but not counted.
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

// keepHidden stores the hidden states from which the request's next tokens are drafted: n rows of hidden from first on,
// which end at the sequence's last position. It runs on the engine's thread.
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

// catchUpDrafts lets the draft model prefill what the target has evaluated. It runs on the engine's thread.
func (b *batcher) catchUpDrafts(plan []batchItem) {
	var generations []*generation
	for _, s := range plan {
		if g := s.g; !g.ended && !g.retryAlone && g.request.Draft.Mode != DraftOff {
			generations = append(generations, g)
		}
	}
	b.drafter.catchUp(generations)
}

// measure records the timing of a step without prefill: the time for drafting, and the remaining time since the
// previous step ended.
func (b *batcher) measure(plan []batchItem, drafting, running time.Duration) {
	rows, drafted, deepest := 0, 0, 0
	for _, s := range plan {
		if s.rows == 0 {
			return // sent ahead: the device started before this step was timed
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

// planDrafts sets the draft depth of each item. A step generates one token more than it drafts, so the depth stays
// below the request's token budget. It returns the number of items in prefill.
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
		w := draftRequest{
			draftState: &g.draftState, maxTokens: min(g.budget-1, MaxDraft), fixed: g.request.Draft.Mode == DraftFixed,
		}
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

// planStep decides which rows each request evaluates in the next step: one token of each decoding request, and a share
// of the prefill rows for each prompt. Requests whose pictures are not encoded yet are left out. A request with
// retryAlone set is the only one in its step.
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
	total := b.rowLimit(len(prompts), decoding)
	needed, capacity := make([]int, len(prompts)), make([]int, len(prompts))
	for i, g := range prompts {
		needed[i], capacity[i] = g.pending(), g.usableRows()
	}
	rowCounts := divideRows(total, needed, capacity)
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

// rowLimit returns the number of prefill rows in a step with the given numbers of prompts and decoding requests.
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

// usableRows returns how many rows the request can use in the next step: up to the end of its tokens or the next
// snapshot.
func (g *generation) usableRows() int {
	n := g.pending()
	if at := g.seq.Offset(); g.pictures != nil && at < len(g.request.Prompt) {
		n = min(n, len(g.request.Prompt)-at) // tokens after the prompt have no grid positions
	}
	if len(g.snapshots) > 0 {
		n = min(n, g.snapshots[0]-g.seq.Offset())
	}
	return n
}

func (g *generation) batchItem(rows int) batchItem {
	return batchItem{g: g, rows: rows, wantsToken: rows == g.pending() && g.pooling == nil}
}

// forward evaluates a plan and starts sampling for the items that want a token. It returns the hidden states of the
// rows that sampling, drafting and pooling need; nil if no item has rows. It runs on the engine's thread.
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

// takeSamples takes the pending sample from each request that wants a token, in the plan's order. The caller frees
// them.
func takeSamples(plan []batchItem) (samples []*pendingSample) {
	for _, s := range plan {
		if s.wantsToken {
			samples = append(samples, s.g.sample)
			s.g.sample = nil
		}
	}
	return samples
}

// sendAhead enqueues the next step on the device before the tokens of this one are read, so that a GPU does not wait
// for the host. If a token turns out to end its request, that work is discarded. sendAhead does nothing if a request is
// in prefill, has only one token left in its budget, or needs the token's value first (for penalties, formats or
// drafts).
func (b *batcher) sendAhead(plan []batchItem, samples []*pendingSample) {
	var parts []nn.Part
	next := make([]*batchItem, len(plan))
	for i, s := range plan {
		if !s.wantsToken || s.g.budget <= 1 || s.g.retryAlone || s.g.sampler.penalizes() || s.g.constraint != nil ||
			b.mayDraft(s) {
			return
		}
		next[i] = &batchItem{g: s.g, rows: 1, wantsToken: true, firstSampleRow: i}
		parts = append(parts, nn.Part{Seq: s.g.seq, Text: len(s.g.request.Prompt), Shift: s.g.pictures.generatedShift()})
	}
	b.sample(next, b.l.model.Forward(nn.NextBatch(sampledTokens(samples), parts...)))
}

// mayDraft reports whether the item drafts in this step, so that its next position is not known yet, or may draft in
// the next one.
func (b *batcher) mayDraft(s batchItem) bool {
	switch {
	case len(s.drafts) > 0:
		return true
	case s.g.request.Draft.Mode == DraftOff || s.g.budget <= 2:
		return false
	}
	return s.g.request.Draft.Mode == DraftFixed || b.depths.mayDraft(&s.g.draftState)
}

// sample starts sampling for the items that want a token. hidden holds the hidden states of the forward pass, which
// firstSampleRow indexes. It also stores the hidden states for drafting and takes snapshots that are due.
func (b *batcher) sample(plan []*batchItem, hidden *mlx.Array) {
	var rows []int32
	var generations []*generation
	var requests []sampleRequest
	for _, s := range plan {
		if len(s.drafts) == 0 { // with drafts, the rows to keep are known after verification
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
	if len(generations) < len(plan) { // a prompt that samples no token: its state must be evaluated explicitly
		for _, s := range plan {
			wanted = append(wanted, s.g.seq.State()...)
		}
	}
	mlx.AsyncEval(wanted...)
	b.takeSnapshots(plan)
	if len(generations) == 0 {
		mlx.Eval(wanted...) // so that the step's time can be measured
	}
}

// takeSnapshots stores the state of sequences that have reached a snapshot position of their prompt.
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

// recoverFrom resets a request after a failed step: it restarts from the prefix cache and runs its next step alone. A
// request that was already alone ends with err, unless drafting may have caused the failure: it then gets another try
// without drafts.
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

// restart discards the sequence's state, because its position is undefined after a failure, and leaves the prefix
// cache's session without storing it. All tokens are evaluated again. It runs on the engine's thread.
func (g *generation) restart() {
	if g.session != nil {
		g.session.Leave()
		g.session = nil
	}
	g.dropState()
}

// dropState frees the sequence and discards a pending sample, which will be drawn again.
func (g *generation) dropState() {
	g.sample.free()
	g.sample = nil
	g.seq.Free()
	g.draftInputs.free()
	g.pooling.reset()
	g.sampler.position = uint64(len(g.tokens) - len(g.request.Prompt))
}
