package ranks

import (
	"github.com/ingotml/ingot/runtime/draft"
)

// Drafter returns d, or a drafter that has the followers draft with it, if the draft is divided over the ranks.
func (l *Leader) Drafter(d draft.Drafter) draft.Drafter {
	if l == nil || !l.log.model.DraftsTogether() {
		return d
	}
	return drafter{d, l, len(l.log.model.Draft.Layers()) > 0}
}

// drafter logs what a drafter does.
type drafter struct {
	draft.Drafter
	l         *Leader
	catchesUp bool // it has a KV cache
}

// text returns what a text has got since it was named last.
func (l *Leader) text(t *draft.Text) text {
	s := l.named(t)
	x := text{Text: s.id, Tokens: t.Tokens[min(s.sent, len(t.Tokens)):]}
	s.sent = max(s.sent, len(t.Tokens))
	if t.Target != nil {
		x.Target = l.sequence(t.Target)
	}
	return x
}

func (l *Leader) named(t *draft.Text) *sentText {
	s := l.log.texts[t]
	if s == nil {
		l.log.last++
		s = &sentText{id: l.log.last}
		l.log.texts[t] = s
	}
	return s
}

func (d drafter) Propose(round []*draft.Item) {
	c := &propose{}
	for _, i := range round {
		c.Texts, c.Depths = append(c.Texts, d.l.text(i.Text)), append(c.Depths, i.Depth)
	}
	d.l.add(c)
	d.l.must()
	d.Drafter.Propose(round)
}

func (d drafter) CatchUp(of []*draft.Text) {
	if !d.catchesUp || len(of) == 0 {
		return
	}
	c := &catchUp{}
	for _, t := range of {
		c.Texts = append(c.Texts, d.l.text(t))
	}
	d.l.add(c)
	d.l.must()
	d.Drafter.CatchUp(of)
}

func (d drafter) FinishRound(t *draft.Text, accepted int) {
	d.l.add(&finishRound{d.l.named(t).id, accepted})
	d.Drafter.FinishRound(t, accepted)
}

// KeepHidden logs that a text keeps rows [from, to) of the last forward pass; see draft.Text.KeepHidden.
func (l *Leader) KeepHidden(t *draft.Text, from, to, end int, lastOnly bool) {
	if l != nil && l.log.model.DraftsTogether() {
		l.add(&keepHidden{l.named(t).id, from, to, end, lastOnly})
	}
}

// FreeText logs draft.Text.Free.
func (l *Leader) FreeText(t *draft.Text) {
	if l == nil {
		return
	}
	if s := l.log.texts[t]; s != nil {
		l.add(&freeText{s.id})
		delete(l.log.texts, t)
	}
}

var _ draft.Drafter = drafter{}
