package ranks

import (
	"fmt"

	"github.com/ingotml/ingot/cache/prefix"
)

// id names a sequence, session or text. The leader chooses it. 0 is none.
type id = uint64

// command is what the leader did. Each is applied by the method of the same name of replica.
type command interface {
	op() byte
	code(c *coder)
	apply(r *replica) error
}

// forward is a forward pass, and the logits of some of its rows.
type forward struct {
	Parts []part
	Head  []int // rows of the hidden states whose logits are computed
	// Unread: nobody reads the hidden states. The last rank of a pipeline does not send them.
	Unread bool
}

// part is an nn.Part.
type part struct {
	Seq     id
	At      int // the sequence's offset before the pass
	Tokens  []int32
	All     bool
	Text    int
	Shift   int32
	Grid    [3][]int32
	Vectors []vectors
}

// vectors are an nn.Vectors, whose elements the leader broadcasts over the group.
type vectors struct{ Row, Rows, Width, Type int }

type (
	head   struct{ Rows []int } // logits of more rows of the last forward pass, which are read at once
	begin  struct{ Seq id }     // cache.Sequence.Begin
	commit struct {             // cache.Sequence.Commit
		Seq  id
		Rows int
	}
	freeSequence struct{ Seq id }
	forget       struct{} // models.Repeater.Forget
	clear_       struct{} // mlx.Thread.ClearCache

	// sessionBegin begins a prefix.Session.
	sessionBegin struct {
		Session, Seq id
		Owner        string
		Keys         []prefix.Key
		Most         int // keys that may be restored
	}
	sessionContinue struct {
		Session id
		Keys    []prefix.Key
	}
	sessionSnapshot struct {
		Session id
		User    bool
	}
	sessionStore struct {
		Session id
		Keys    []prefix.Key
	}
	sessionLeave struct{ Session id }
	evict        struct{ Node uint64 }

	// keepHidden is of a draft.Text.
	keepHidden struct {
		Text     id
		From, To int // rows of the last forward pass
		End      int // position of the sequence
		LastOnly bool
	}
	propose struct {
		Texts  []text
		Depths []int
	}
	catchUp     struct{ Texts []text }
	finishRound struct {
		Text     id
		Accepted int
	}
	freeText struct{ Text id }

	// check asks for the state after all commands before it.
	check struct{ Number uint64 }
)

// text is what a draft.Text has got since it was last named.
type text struct {
	Text, Target id
	Tokens       []int32 // that follow those sent before
}

const (
	opForward byte = iota + 1
	opBegin
	opCommit
	opFreeSequence
	opForget
	opClear
	opSessionBegin
	opSessionContinue
	opSessionSnapshot
	opSessionStore
	opSessionLeave
	opEvict
	opKeepHidden
	opPropose
	opCatchUp
	opFinishRound
	opFreeText
	opCheck
	opHead
)

// newCommand returns an empty command, or nil.
func newCommand(op byte) command {
	switch op {
	case opForward:
		return &forward{}
	case opBegin:
		return &begin{}
	case opCommit:
		return &commit{}
	case opFreeSequence:
		return &freeSequence{}
	case opForget:
		return &forget{}
	case opClear:
		return &clear_{}
	case opSessionBegin:
		return &sessionBegin{}
	case opSessionContinue:
		return &sessionContinue{}
	case opSessionSnapshot:
		return &sessionSnapshot{}
	case opSessionStore:
		return &sessionStore{}
	case opSessionLeave:
		return &sessionLeave{}
	case opEvict:
		return &evict{}
	case opKeepHidden:
		return &keepHidden{}
	case opPropose:
		return &propose{}
	case opCatchUp:
		return &catchUp{}
	case opFinishRound:
		return &finishRound{}
	case opFreeText:
		return &freeText{}
	case opCheck:
		return &check{}
	case opHead:
		return &head{}
	}
	return nil
}

func (*forward) op() byte         { return opForward }
func (*begin) op() byte           { return opBegin }
func (*commit) op() byte          { return opCommit }
func (*freeSequence) op() byte    { return opFreeSequence }
func (*forget) op() byte          { return opForget }
func (*clear_) op() byte          { return opClear }
func (*sessionBegin) op() byte    { return opSessionBegin }
func (*sessionContinue) op() byte { return opSessionContinue }
func (*sessionSnapshot) op() byte { return opSessionSnapshot }
func (*sessionStore) op() byte    { return opSessionStore }
func (*sessionLeave) op() byte    { return opSessionLeave }
func (*evict) op() byte           { return opEvict }
func (*keepHidden) op() byte      { return opKeepHidden }
func (*propose) op() byte         { return opPropose }
func (*catchUp) op() byte         { return opCatchUp }
func (*finishRound) op() byte     { return opFinishRound }
func (*freeText) op() byte        { return opFreeText }
func (*check) op() byte           { return opCheck }
func (*head) op() byte            { return opHead }

func (f *forward) code(c *coder) {
	list(c, &f.Parts, func(p *part) {
		c.uint(&p.Seq)
		c.int(&p.At)
		c.tokens(&p.Tokens)
		c.bool(&p.All)
		c.int(&p.Text)
		c.signed(&p.Shift)
		for axis := range p.Grid {
			c.tokens(&p.Grid[axis])
		}
		list(c, &p.Vectors, func(v *vectors) { c.int(&v.Row); c.int(&v.Rows); c.int(&v.Width); c.int(&v.Type) })
	})
	list(c, &f.Head, c.int)
	c.bool(&f.Unread)
}

func (x *begin) code(c *coder)        { c.uint(&x.Seq) }
func (x *commit) code(c *coder)       { c.uint(&x.Seq); c.int(&x.Rows) }
func (x *freeSequence) code(c *coder) { c.uint(&x.Seq) }
func (*forget) code(*coder)           {}
func (*clear_) code(*coder)           {}
func (x *sessionBegin) code(c *coder) {
	c.uint(&x.Session)
	c.uint(&x.Seq)
	c.string(&x.Owner)
	c.keys(&x.Keys)
	c.int(&x.Most)
}
func (x *head) code(c *coder)            { list(c, &x.Rows, c.int) }
func (x *sessionContinue) code(c *coder) { c.uint(&x.Session); c.keys(&x.Keys) }
func (x *sessionSnapshot) code(c *coder) { c.uint(&x.Session); c.bool(&x.User) }
func (x *sessionStore) code(c *coder)    { c.uint(&x.Session); c.keys(&x.Keys) }
func (x *sessionLeave) code(c *coder)    { c.uint(&x.Session) }
func (x *evict) code(c *coder)           { c.uint(&x.Node) }
func (x *finishRound) code(c *coder)     { c.uint(&x.Text); c.int(&x.Accepted) }
func (x *freeText) code(c *coder)        { c.uint(&x.Text) }
func (x *check) code(c *coder)           { c.uint(&x.Number) }
func (x *catchUp) code(c *coder)         { texts(c, &x.Texts) }
func (x *propose) code(c *coder)         { texts(c, &x.Texts); list(c, &x.Depths, c.int) }
func (x *keepHidden) code(c *coder) {
	c.uint(&x.Text)
	c.int(&x.From)
	c.int(&x.To)
	c.int(&x.End)
	c.bool(&x.LastOnly)
}

func texts(c *coder, all *[]text) {
	list(c, all, func(t *text) { c.uint(&t.Text); c.uint(&t.Target); c.tokens(&t.Tokens) })
}

// encode appends a command.
func encode(b []byte, x command) []byte {
	c := coder{b: append(b, x.op())}
	x.code(&c)
	return c.b
}

// decode reads a command and returns the rest.
func decode(b []byte) (command, []byte, error) {
	x := newCommand(b[0])
	if x == nil {
		return nil, nil, fmt.Errorf("there is no command %d", b[0])
	}
	c := coder{decoding: true, b: b[1:]}
	x.code(&c)
	return x, c.b, c.err
}
