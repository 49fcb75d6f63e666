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
	stepAlone  = 3 * time.Second
	stepPrompt = time.Second
	stepShared = 250 * time.Millisecond
	wholeRows  = 256 // what a CPU kernel unpacks weights once for
)

// Bounds of the rows of prompts in a step, and how many it has before anything was measured.
const (
	leastRows = 32
	firstRows = 128
	mostRows  = 2048
)

// pace is how many rows a second the model evaluates.
type pace float64

// rows are what fits into a time.
func (p pace) rows(d time.Duration) int {
	if p == 0 {
		return firstRows
	}
	return min(max(int(float64(p)*d.Seconds())/leastRows*leastRows, leastRows), mostRows)
}

// saw takes a measurement into account. Steps of few rows tell nothing of many.
func (p *pace) saw(rows int, d time.Duration) {
	if rows < leastRows || d <= 0 {
		return
	}
	now := pace(float64(rows) / d.Seconds())
	if *p == 0 {
		*p = now
	}
	*p += (now - *p) / 3
}

// stepped is what a step evaluates of a request.
type stepped struct {
	g      *generation
	rows   int
	choose bool // a token comes of it

	depth  int          // most tokens that may be drafted
	drafts []int32      // rows beyond those, which the model judges
	q      []*mlx.Array // what each was drawn from, see ask; it may have more than there are drafts
	first  int          // of the hidden states, the one that the first token comes from
}

// hears is the hidden states that a request's drafts are made from.
func (b *batcher) hears(g *generation) reading {
	if g.request.Draft.Mode == DraftOff || g.alone {
		return readsNothing
	}
	r := b.proposer.reads()
	if r == readsLast && g.request.Draft.Mode == DraftAuto && !b.depths.due(&g.outlook) {
		return readsNothing
	}
	return r
}

// step runs one forward for the requests at hand. When it fails, each of them has its next one alone, and ends when that fails.
func (b *batcher) step() {
	if b.encode() {
		return
	}
	plan := b.compose()
	if len(plan) == 0 { // pictures are being decoded
		b.idle = true
		return
	}
	prompts := b.deepen(plan)
	begun, rows := time.Now(), 0
	since := b.ended
	if since.IsZero() {
		since = begun
	}
	for _, s := range plan {
		rows += s.rows
	}
	err := b.do(func() error {
		if b.steps != nil {
			if err := b.steps(plan); err != nil {
				return err
			}
		}
		proposing := time.Now()
		b.propose(plan)
		drafting := time.Since(proposing)
		hidden := b.forward(plan)
		b.pool(plan, hidden)
		answers := takeAnswers(plan)
		defer func() { // what was not read
			for _, a := range answers {
				a.free()
			}
		}()
		if b.ahead && len(plan) == len(b.running) { // else a prompt waits for its rows
			b.sendAhead(plan, answers)
		}
		said := make([]outcome, len(answers))
		for i, a := range answers {
			said[i] = a.read()
		}
		b.settle(plan, hidden, said)
		b.follow(plan)
		if b.ended = time.Now(); prompts == 0 {
			b.measure(plan, drafting, b.ended.Sub(since)-drafting)
		}
		return nil
	})
	if err == nil {
		b.pace.saw(rows, time.Since(begun))
	}
	for _, s := range plan {
		switch {
		case s.g.over: // also where something failed after that
			b.leave(s.g, nil)
		case err != nil:
			b.failed(s, len(plan) == 1, err)
		default:
			s.g.alone = false
		}
	}
}

// settle hands requests what was said to them, and ends transactions. It runs on the engine's thread.
func (b *batcher) settle(plan []stepped, hidden *mlx.Array, said []outcome) {
	for i := range plan {
		s := &plan[i]
		if !s.choose {
			continue
		}
		o := said[0]
		said = said[1:]
		n := s.g.take(s.drafts, o)
		if len(s.drafts) == 0 {
			continue
		}
		s.g.seq.Commit(n) // what was said last was not evaluated, what was said before the drafts was
		if !s.g.over {
			b.keepRows(s.g, hidden, s.first, n)
			b.proposer.judged(s.g, o.accepted)
			b.depths.judged(&s.g.outlook, len(s.drafts), o.accepted)
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
		if g.over = g.emit(token, o.log(i)); g.over {
			return i + 1
		}
	}
	g.stats.Drafted += len(drafts) - o.accepted
	g.over = g.emit(o.next, o.log(o.accepted)) || g.force()
	return o.accepted + 1
}

// keepRows keeps the hidden states that a request's next tokens are drafted from: of n rows from the first one on, whose last one is that
// of the last position. It runs on the engine's thread.
func (b *batcher) keepRows(g *generation, hidden *mlx.Array, first, n int) {
	switch b.hears(g) {
	case readsNothing:
		return
	case readsLast:
		first, n = first+n-1, 1
		g.drafting.rows.free()
	}
	if n < hidden.Dim(0) {
		hidden = mlx.SliceAxis(hidden, 0, mlx.Range(first, first+n))
	}
	g.drafting.rows.add(hidden, g.seq.Offset())
}

// follow lets the draft read on where the model has read a prompt. It runs on the engine's thread.
func (b *batcher) follow(plan []stepped) {
	var of []*generation
	for _, s := range plan {
		if g := s.g; !g.over && !g.alone && g.request.Draft.Mode != DraftOff {
			of = append(of, g)
		}
	}
	b.proposer.follow(of)
}

// measure notes how long a step without prompts took to draft, and all the rest since the step before it.
func (b *batcher) measure(plan []stepped, drafting, running time.Duration) {
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
	b.depths.stepped(len(plan), rows, running)
	if drafted > 0 {
		b.depths.drafted(len(plan), drafted, deepest, drafting)
	}
}

// deepen decides how many tokens each request of a step may draft: never so many that with the one after them they exceed what may still
// come. It gives the number of prompts in the step.
func (b *batcher) deepen(plan []stepped) (prompts int) {
	var who []*stepped
	var wishes []wish
	for i := range plan {
		s := &plan[i]
		g := s.g
		if g.prefilling() {
			prompts++
		}
		if g.request.Draft.Mode == DraftOff || g.alone || g.prefilling() || s.rows != 1 || !s.choose {
			continue
		}
		w := wish{outlook: &g.outlook, most: min(g.budget-1, MaxDraft), fixed: g.request.Draft.Mode == DraftFixed}
		if w.fixed {
			w.most = min(w.most, g.request.Draft.N)
		}
		if w.most > 0 {
			who, wishes = append(who, s), append(wishes, w)
		}
	}
	if len(who) == 0 {
		return prompts
	}
	b.depths.plan(len(plan)-prompts, wishes)
	for _, s := range who {
		s.depth = s.g.outlook.depth
	}
	return prompts
}

// compose decides who gets how many rows: a token for each request that has begun to speak, and shares of a chunk for prompts. One that has
// to be alone is. Those whose pictures are not decoded wait.
func (b *batcher) compose() []stepped {
	if i := slices.IndexFunc(b.running, func(g *generation) bool { return g.alone }); i >= 0 {
		g := b.running[i]
		return []stepped{g.stepped(min(g.room(), b.rows(1, 0)))}
	}
	var prompts []*generation
	speaking := 0
	for _, g := range b.running {
		switch {
		case g.blind():
		case g.prefilling():
			prompts = append(prompts, g)
		default:
			speaking++
		}
	}
	left := b.rows(len(prompts), speaking)
	needs, rooms := make([]int, len(prompts)), make([]int, len(prompts))
	for i, g := range prompts {
		needs[i], rooms[i] = g.pending(), g.room()
	}
	shares := shareOut(left, needs, rooms)
	plan := make([]stepped, 0, len(b.running))
	for _, g := range b.running {
		if g.blind() {
			continue
		}
		rows := g.room()
		if g.prefilling() {
			rows, shares = shares[0], shares[1:]
			if rows == 0 {
				continue
			}
		}
		plan = append(plan, g.stepped(rows))
	}
	return plan
}

// shareOut shares a step's rows among prompts, which are in the order in which they came, need so many rows until they speak, and have room for so
// many now. Half of the rows are for whoever came first, so that nobody waits for ever; the others go to those who need least, so that a short
// prompt does not wait for a long one, nor all for each other.
func shareOut(rows int, needs, rooms []int) []int {
	shares := make([]int, len(needs))
	order := make([]int, len(needs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return needs[a] - needs[b] })
	give := func(i, most int) {
		n := min(rooms[i]-shares[i], most)
		shares[i] += n
		rows -= n
	}
	if len(needs) > 0 {
		give(0, (rows+1)/2)
	}
	for _, i := range order {
		give(i, rows)
	}
	return shares
}

// rows is how many rows of so many prompts a step has, beside requests that speak.
func (b *batcher) rows(prompts, speaking int) int {
	switch {
	case b.chunk > 0:
		return b.chunk
	case speaking > 0:
		return b.pace.rows(stepShared)
	case prompts > 1:
		return b.pace.rows(stepPrompt)
	}
	return max(b.pace.rows(stepAlone)/wholeRows, 1) * wholeRows
}

// room is how many rows the request can use in the next step: up to the end of its tokens or to a point where its state is kept.
func (g *generation) room() int {
	n := g.pending()
	if at := g.seq.Offset(); g.show != nil && at < len(g.request.Prompt) {
		n = min(n, len(g.request.Prompt)-at) // what follows has no place among pictures
	}
	if len(g.points) > 0 {
		n = min(n, g.points[0]-g.seq.Offset())
	}
	return n
}

func (g *generation) stepped(rows int) stepped {
	return stepped{g: g, rows: rows, choose: rows == g.pending() && g.embed == nil}
}

// forward evaluates a plan: it begins to choose for each request that is to. It gives the hidden states of the rows that were wanted. It runs
// on the engine's thread.
func (b *batcher) forward(plan []stepped) (hidden *mlx.Array) {
	var parts []nn.Part
	var evaluated []*stepped
	row := 0
	for i := range plan {
		s := &plan[i]
		if s.rows == 0 {
			continue
		}
		p := s.g.part(s.rows, s.drafts)
		p.All = len(s.drafts) > 0 || b.hears(s.g) == readsAll || s.g.embed.readsAll()
		wanted := 1
		if p.All {
			wanted = len(p.Tokens)
		}
		s.first = row + wanted - 1 - len(s.drafts)
		row += wanted
		if len(s.drafts) > 0 {
			s.g.seq.Begin()
		}
		parts, evaluated = append(parts, p), append(evaluated, s)
	}
	if len(parts) > 0 {
		hidden = b.forwards.Forward(parts...)
		b.choose(evaluated, hidden)
	}
	return hidden
}

// takeAnswers takes the answer of each request that is to choose, in order.
func takeAnswers(plan []stepped) (answers []*answer) {
	for _, s := range plan {
		if s.choose {
			answers = append(answers, s.g.chosen)
			s.g.chosen = nil
		}
	}
	return answers
}

// sendAhead builds the next step upon tokens that are not yet read, so that a GPU does not wait for the host while it is
// told what to do. For a token that ends its stream that was for nothing. Penalties, formats and drafts need a token's value first, and who
// still reads a prompt wants to be a part of the next step.
func (b *batcher) sendAhead(plan []stepped, answers []*answer) {
	var parts []nn.Part
	next := make([]*stepped, len(plan))
	for i, s := range plan {
		if !s.choose || s.g.budget <= 1 || s.g.alone || s.g.sampler.penalizes() || s.g.rules != nil || b.drafts(s) {
			return
		}
		next[i] = &stepped{g: s.g, rows: 1, choose: true, first: i}
		parts = append(parts, nn.Part{Seq: s.g.seq, Text: len(s.g.request.Prompt), Shift: s.g.show.next()})
	}
	b.choose(next, b.l.model.Forward(nn.NextBatch(tokens(answers), parts...)))
}

// drafts tells whether a request of a step drafts in it, so that nobody knows yet where it will stand, or may draft in the next one.
func (b *batcher) drafts(s stepped) bool {
	switch {
	case len(s.drafts) > 0:
		return true
	case s.g.request.Draft.Mode == DraftOff || s.g.budget <= 2:
		return false
	}
	return s.g.request.Draft.Mode == DraftFixed || b.depths.due(&s.g.outlook)
}

// choose begins to choose the tokens of those that are to have one, from the hidden states of a plan's wanted rows.
func (b *batcher) choose(plan []*stepped, hidden *mlx.Array) {
	var rows []int32
	var who []*generation
	var asks []ask
	for _, s := range plan {
		if len(s.drafts) == 0 { // those of others depend on what is accepted
			n := 1
			if b.hears(s.g) == readsAll {
				n = s.rows
			}
			b.keepRows(s.g, hidden, s.first+1-n, n)
		}
		if !s.choose {
			continue
		}
		for i := range len(s.drafts) + 1 {
			rows = append(rows, int32(s.first+i))
		}
		who, asks = append(who, s.g), append(asks, s.g.ask(s.drafts, s.q))
	}
	var wanted []*mlx.Array
	if len(who) > 0 {
		if len(rows) < hidden.Dim(0) {
			hidden = mlx.Take(hidden, mlx.FromSlice(b.l.thread, rows), 0)
		}
		v := verdicts(b.l.model.Head(hidden), asks)
		for i, g := range who {
			g.chosen = &answer{v, i}
		}
		wanted = v.arrays()
	}
	if len(who) < len(plan) { // of a part of a prompt, nothing else asks for the state
		for _, s := range plan {
			wanted = append(wanted, s.g.seq.State()...)
		}
	}
	mlx.AsyncEval(wanted...)
	b.keepPoints(plan)
	if len(who) == 0 {
		mlx.Eval(wanted...) // so that the time of the step is known
	}
}

// keepPoints copies the state of sequences that have come to a point of their prompts.
func (b *batcher) keepPoints(plan []*stepped) {
	for _, s := range plan {
		g := s.g
		if len(g.points) == 0 || g.seq.Offset() != g.points[0] {
			continue
		}
		g.session.Snapshot(g.points[0] != g.session.Branch())
		g.points = g.points[1:]
	}
}

// failed brings a request back to where a step that failed began: it starts over from what the prefix cache has, and then runs alone. One
// that was alone ends; but if something was drafted, that may be to blame.
func (b *batcher) failed(s stepped, alone bool, err error) {
	g := s.g
	end := alone && (g.alone || b.hears(g) == readsNothing && s.depth == 0)
	doErr := b.do(func() error {
		b.forwards.Forget()
		g.abandon()
		if !end {
			g.enter()
		}
		return nil
	})
	switch {
	case end:
		b.leave(g, err)
	case doErr != nil:
		b.leave(g, doErr)
	default:
		g.alone = true
	}
}

// abandon gives up the sequence's state, which may be of any position, and with it the place in the prefix cache: all tokens so far are to
// be evaluated again. It runs on the engine's thread.
func (g *generation) abandon() {
	if g.session != nil {
		g.session.Leave()
		g.session = nil
	}
	g.forget()
}

// forget gives up the sequence, and a token that was chosen and not read: it is chosen again.
func (g *generation) forget() {
	g.chosen.free()
	g.chosen = nil
	g.seq.Free()
	g.drafting.free()
	g.embed.reset()
	g.sampler.drawn = uint64(len(g.tokens) - len(g.request.Prompt))
}
