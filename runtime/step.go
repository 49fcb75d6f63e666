package runtime

import (
	"context"
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
}

// step runs one forward for the requests at hand. When it fails, each of them has its next one alone, and ends when that fails.
func (b *batcher) step() {
	if b.encode() {
		return
	}
	plan := b.compose()
	var said []outcome
	begun, rows := time.Now(), 0
	for _, s := range plan {
		rows += s.rows
	}
	err := b.l.do(context.Background(), func() error {
		if b.steps != nil {
			if err := b.steps(plan); err != nil {
				return err
			}
		}
		answers := b.forward(plan)
		defer func() {
			for _, a := range answers {
				a.free()
			}
		}()
		for _, a := range answers {
			said = append(said, a.read())
		}
		return nil
	})
	if err != nil {
		b.failed(plan, err)
		return
	}
	b.pace.saw(rows, time.Since(begun))
	i := 0
	for _, s := range plan {
		s.g.alone = false
		if !s.choose {
			continue
		}
		if s.g.emit(said[i].next, said[i].log(0)) || s.g.force() {
			b.leave(s.g, nil)
		}
		i++
	}
}

// encode runs the next picture of a request through the tower, if there is one.
func (b *batcher) encode() bool {
	for _, g := range b.running {
		if g.show == nil || g.encoded == len(g.show.seen) {
			continue
		}
		if err := b.l.see(g.ctx, g.show.seen[g.encoded]); err != nil {
			b.leave(g, err)
			return true
		}
		g.encoded++
		return true
	}
	return false
}

// compose decides who gets how many rows: a token for each request that has begun to speak, and for prompts shares of a chunk, which are
// equal as far as they are needed. One that has to be alone is.
func (b *batcher) compose() []stepped {
	if i := slices.IndexFunc(b.running, func(g *generation) bool { return g.alone }); i >= 0 {
		g := b.running[i]
		return []stepped{g.stepped(min(g.room(), b.rows(1, 0)))}
	}
	var prompts []*generation
	speaking := 0
	for _, g := range b.running {
		if g.prefilling() {
			prompts = append(prompts, g)
		} else {
			speaking++
		}
	}
	left := b.rows(len(prompts), speaking)
	share := map[*generation]int{}
	slices.SortStableFunc(prompts, func(a, c *generation) int { return a.room() - c.room() }) // what the short ones leave, the long ones get
	for i, g := range prompts {
		n := min(g.room(), max(1, left/(len(prompts)-i)))
		share[g] = n
		left -= n
	}
	plan := make([]stepped, 0, len(b.running))
	for _, g := range b.running {
		if n, ok := share[g]; ok {
			plan = append(plan, g.stepped(n))
		} else {
			plan = append(plan, g.stepped(g.room()))
		}
	}
	return plan
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
	if len(g.points) > 0 {
		n = min(n, g.points[0]-g.seq.Offset())
	}
	return n
}

func (g *generation) stepped(rows int) stepped { return stepped{g, rows, rows == g.pending()} }

// forward evaluates a plan and gives an answer for each that is to choose, in order, which is being computed. It runs on the engine's thread.
func (b *batcher) forward(plan []stepped) []*answer {
	var parts []nn.Part
	var evaluated []stepped
	for _, s := range plan {
		if s.rows > 0 {
			parts, evaluated = append(parts, s.g.part(s.rows)), append(evaluated, s)
		}
	}
	if len(parts) > 0 {
		b.choose(evaluated, b.l.model.Forward(nn.NewBatch(b.l.thread, parts...)))
	}
	var answers []*answer
	for _, s := range plan {
		if s.choose {
			answers = append(answers, s.g.chosen)
			s.g.chosen = nil
		}
	}
	if b.ahead {
		b.sendAhead(plan, answers)
	}
	return answers
}

// sendAhead builds the next step upon tokens that are not yet read, so that a GPU does not wait for the host while it is
// told what to do. For a token that ends its stream that was for nothing. Penalties and formats need a token's value first, and who still reads a prompt
// wants to be a part of the next step.
func (b *batcher) sendAhead(plan []stepped, answers []*answer) {
	var parts []nn.Part
	for _, s := range plan {
		if !s.choose || s.g.budget <= 1 || s.g.alone || s.g.sampler.penalizes() || s.g.rules != nil {
			return
		}
		parts = append(parts, nn.Part{Seq: s.g.seq, Text: len(s.g.request.Prompt), Shift: s.g.show.next()})
	}
	b.choose(plan, b.l.model.Forward(nn.NextBatch(tokens(answers), parts...)))
}

// choose begins to choose the tokens of those that are to have one, from the hidden states [len(plan), hidden].
func (b *batcher) choose(plan []stepped, hidden *mlx.Array) {
	var rows []int32
	var who []*generation
	var asks []ask
	for i, s := range plan {
		if s.choose {
			rows, who, asks = append(rows, int32(i)), append(who, s.g), append(asks, s.g.ask(nil, nil))
		}
	}
	var wanted []*mlx.Array
	if len(who) > 0 {
		if len(rows) < len(plan) {
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
func (b *batcher) keepPoints(plan []stepped) {
	for _, s := range plan {
		g := s.g
		if len(g.points) == 0 || g.seq.Offset() != g.points[0] {
			continue
		}
		g.session.Snapshot(g.points[0] != g.session.Branch())
		g.points = g.points[1:]
	}
}

// failed brings requests back to where a step that failed began. What cannot go back starts over from what the prefix cache has.
func (b *batcher) failed(plan []stepped, err error) {
	if len(plan) == 1 {
		b.leave(plan[0].g, err)
		return
	}
	for _, s := range plan {
		g := s.g
		if doErr := b.l.do(context.Background(), func() error { g.restart(); return nil }); doErr != nil {
			b.leave(g, doErr)
			continue
		}
		g.alone = true
	}
}

// restart gives up the sequence's state and begins again with all tokens so far. It runs on the engine's thread.
func (g *generation) restart() {
	if g.session != nil {
		g.session.Leave()
		g.session = nil
	}
	g.forget()
	g.enter()
}

// forget gives up the sequence, and a token that was chosen and not read: it is chosen again.
func (g *generation) forget() {
	g.chosen.free()
	g.chosen = nil
	g.seq.Free()
	g.sampler.drawn = uint64(len(g.tokens) - len(g.request.Prompt))
}
