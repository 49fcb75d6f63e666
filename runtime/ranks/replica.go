package ranks

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/draft"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/sample"
)

// replica is a follower's state of a model. Its methods run on the engine's thread.
type replica struct {
	model    *load.Model
	forwards *models.Repeater
	drafter  draft.Drafter // nil: the leader drafts without the followers
	tree     *prefix.Tree

	sequences map[id]*cache.Sequence
	sessions  map[id]*prefix.Session
	texts     map[id]*draft.Text

	hidden  *mlx.Array // of the last forward pass, valid until the next one
	logits  *mlx.Array // ditto; nil: none
	checked func(uint64)
}

func newReplica(m *load.Model) *replica {
	r := &replica{
		model: m, forwards: models.NewRepeater(m.Thread, m.Target), tree: prefix.New(m.Kinds, 0),
		sequences: map[id]*cache.Sequence{}, sessions: map[id]*prefix.Session{}, texts: map[id]*draft.Text{},
	}
	r.tree.Follow()
	if m.DraftsTogether() {
		r.drafter = draft.New(m, runtime.DraftOptions{})
	}
	return r
}

// close frees everything.
func (r *replica) close() {
	r.forwards.Forget()
	for _, t := range r.texts {
		t.Free()
	}
	r.tree.Close()
	for _, s := range r.sequences {
		s.Free()
	}
}

// sequence returns a sequence, which is new if it was not named before.
func (r *replica) sequence(of id) *cache.Sequence {
	s := r.sequences[of]
	if s == nil {
		s = cache.NewSequence(r.model.Kinds)
		r.sequences[of] = s
	}
	return s
}

func (r *replica) session(of id) (*prefix.Session, error) {
	if s := r.sessions[of]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("there is no session %d", of)
}

func (f *forward) apply(r *replica) error {
	parts := make([]nn.Part, len(f.Parts))
	if len(parts) == 0 {
		return fmt.Errorf("a forward pass of nothing")
	}
	seen := map[id]bool{}
	for i, p := range f.Parts {
		seq := r.sequence(p.Seq)
		if at := seq.Offset(); at != p.At {
			return fmt.Errorf("sequence %d is at position %d, on rank 0 at %d", p.Seq, at, p.At)
		}
		if len(p.Tokens) == 0 || seen[p.Seq] || !r.inVocabulary(p.Tokens) {
			return fmt.Errorf("a forward pass of sequence %d with wrong tokens", p.Seq)
		}
		for _, g := range p.Grid {
			if len(g) != 0 && len(g) != len(p.Tokens) {
				return fmt.Errorf("sequence %d has %d positions for %d tokens", p.Seq, len(g), len(p.Tokens))
			}
		}
		seen[p.Seq] = true
		parts[i] = nn.Part{Seq: seq, Tokens: p.Tokens, All: p.All, Text: p.Text, Shift: int(p.Shift), Grid: p.Grid}
		given, err := r.receive(p)
		if err != nil {
			return err
		}
		parts[i].Vectors = given
	}
	wanted := models.Wanted(parts)
	for _, row := range f.Head {
		if row >= wanted {
			return fmt.Errorf("logits of row %d of %d", row, wanted)
		}
	}
	r.logits = nil
	if f.Unread {
		r.hidden = r.forwards.ForwardUnread(parts...)
	} else {
		r.hidden = r.forwards.Forward(parts...)
	}
	if len(f.Head) > 0 && r.model.Stages == nil {
		mlx.Eval(r.hidden)
		r.logits = Head(r.model.Target, r.hidden, f.Head)
		mlx.Eval(r.logits)
		return nil
	}
	state := []*mlx.Array{r.hidden}
	for _, p := range parts {
		state = append(state, p.Seq.State()...)
	}
	mlx.Eval(state...)
	return nil
}

// apply frees the logits at once: the leader reads them in blocks, because those of all rows could take too much
// memory.
func (h *head) apply(r *replica) error {
	if r.hidden == nil || r.model.Stages != nil || len(h.Rows) == 0 {
		return fmt.Errorf("logits of %d rows without a forward pass that has them", len(h.Rows))
	}
	for _, row := range h.Rows {
		if row >= r.hidden.Dim(0) {
			return fmt.Errorf("logits of row %d of %d", row, r.hidden.Dim(0))
		}
	}
	r.model.Thread.Scope(func() { mlx.Eval(Head(r.model.Target, r.hidden, h.Rows)) })
	return nil
}

// inVocabulary reports whether all tokens are in the vocabulary. Others would read beyond the embedding.
func (r *replica) inVocabulary(tokens []int32) bool {
	vocab := r.model.Processor.Config.Facts().Vocab
	return !slices.ContainsFunc(tokens, func(id int32) bool { return id < 0 || int64(id) >= vocab })
}

// Head returns the logits of rows of the hidden states.
func Head(m models.Model, hidden *mlx.Array, rows []int) *mlx.Array {
	if len(rows) < hidden.Dim(0) {
		at := make([]int32, len(rows))
		for i, row := range rows {
			at[i] = int32(row)
		}
		hidden = mlx.Take(hidden, mlx.FromSlice(hidden.Thread(), at), 0)
	}
	return m.Head(hidden)
}

// receive returns the vectors of a part, which the leader broadcasts.
func (r *replica) receive(p part) (given []nn.Vectors, err error) {
	for _, v := range p.Vectors {
		if v.Rows == 0 || v.Row+v.Rows > len(p.Tokens) || int64(v.Width) != r.model.Processor.Config.Facts().Hidden ||
			!mlx.DType(v.Type).Float() {
			return nil, fmt.Errorf("a picture of %d rows of width %d does not fit sequence %d", v.Rows, v.Width, p.Seq)
		}
		x := mlx.Zeros(r.model.Thread, mlx.Float32, v.Rows, v.Width)
		given = append(given, nn.Vectors{Row: v.Row, X: shared(r.model.Ranks, x, mlx.DType(v.Type))})
	}
	return given, nil
}

// shared returns the leader's x, in another type.
func shared(g *mlx.Group, x *mlx.Array, as mlx.DType) *mlx.Array {
	x = g.Broadcast(x, 0)
	mlx.Eval(x)
	return mlx.AsType(x, as)
}

func (x *begin) apply(r *replica) error {
	r.sequence(x.Seq).Begin()
	return nil
}

func (x *commit) apply(r *replica) error {
	r.sequence(x.Seq).Commit(x.Rows)
	return nil
}

func (x *freeSequence) apply(r *replica) error {
	if s := r.sequences[x.Seq]; s != nil {
		s.Free()
		delete(r.sequences, x.Seq)
	}
	return nil
}

func (*forget) apply(r *replica) error {
	r.forwards.Forget()
	return nil
}

func (*clear_) apply(r *replica) error {
	r.hidden, r.logits = nil, nil
	r.model.Thread.ClearCache()
	return nil
}

func (x *sessionBegin) apply(r *replica) error {
	if r.sessions[x.Session] != nil || r.sequence(x.Seq).Offset() != 0 {
		return fmt.Errorf("session %d has begun already", x.Session)
	}
	r.sessions[x.Session] = r.tree.BeginWithin(x.Owner, r.sequence(x.Seq), x.Keys, x.Most)
	return nil
}

func (x *sessionContinue) apply(r *replica) error {
	s, err := r.session(x.Session)
	if err == nil {
		s.Continue(x.Keys)
	}
	return err
}

func (x *sessionSnapshot) apply(r *replica) error {
	s, err := r.session(x.Session)
	if err == nil {
		s.Snapshot(x.User)
	}
	return err
}

func (x *sessionStore) apply(r *replica) error {
	s, err := r.session(x.Session)
	if err == nil {
		s.Store(x.Keys)
	}
	return err
}

func (x *sessionLeave) apply(r *replica) error {
	s, err := r.session(x.Session)
	if err == nil {
		s.Leave()
		delete(r.sessions, x.Session)
	}
	return err
}

func (x *evict) apply(r *replica) error { return r.tree.Evict(x.Node) }

// text returns a text with the tokens that it has got.
func (r *replica) text(x text) *draft.Text {
	t := r.texts[x.Text]
	if t == nil {
		t = &draft.Text{}
		r.texts[x.Text] = t
	}
	t.Tokens = append(t.Tokens, x.Tokens...)
	if x.Target != 0 {
		t.Target = r.sequence(x.Target)
	}
	return t
}

func (x *keepHidden) apply(r *replica) error {
	if r.hidden == nil || x.From >= x.To || x.To > r.hidden.Dim(0) {
		return fmt.Errorf("hidden states [%d, %d) of the last forward pass do not exist", x.From, x.To)
	}
	h := r.hidden
	if x.To-x.From < h.Dim(0) {
		h = mlx.SliceAxis(h, 0, mlx.Range(x.From, x.To))
	}
	r.text(text{Text: x.Text}).KeepHidden(h, x.End, x.LastOnly)
	return nil
}

// needDrafter returns an error if this rank does not draft, or cannot for these texts.
func (r *replica) needDrafter(texts ...text) error {
	if r.drafter == nil {
		return fmt.Errorf("the model of this rank has no draft")
	}
	for _, t := range texts {
		if !r.inVocabulary(t.Tokens) {
			return fmt.Errorf("text %d has tokens beyond the vocabulary", t.Text)
		}
	}
	return nil
}

func (x *propose) apply(r *replica) error {
	if err := r.needDrafter(x.Texts...); err != nil {
		return err
	}
	if len(x.Texts) != len(x.Depths) {
		return fmt.Errorf("%d depths for %d texts", len(x.Depths), len(x.Texts))
	}
	greedy := sample.New(runtime.Sampling{}, nil) // the tokens are those of rank 0
	round := make([]*draft.Item, len(x.Texts))
	for i, t := range x.Texts {
		if x.Depths[i] < 1 || x.Depths[i] > runtime.MaxDraft {
			return fmt.Errorf("a draft of %d tokens", x.Depths[i])
		}
		round[i] = &draft.Item{Text: r.text(t), Row: sample.DraftRow{Sampler: greedy}, Depth: x.Depths[i]}
	}
	r.drafter.Propose(round)
	return nil
}

func (x *catchUp) apply(r *replica) error {
	if err := r.needDrafter(x.Texts...); err != nil {
		return err
	}
	var all []*draft.Text
	for _, t := range x.Texts {
		all = append(all, r.text(t))
	}
	r.drafter.CatchUp(all)
	return nil
}

func (x *finishRound) apply(r *replica) error {
	if err := r.needDrafter(); err != nil {
		return err
	}
	r.drafter.FinishRound(r.text(text{Text: x.Text}), x.Accepted)
	return nil
}

func (x *freeText) apply(r *replica) error {
	if t := r.texts[x.Text]; t != nil {
		t.Free()
		delete(r.texts, x.Text)
	}
	return nil
}

func (x *check) apply(r *replica) error {
	r.checked(x.Number)
	return nil
}

// state is what ranks compare.
type state struct {
	Number    uint64     `json:"number"`
	Sequences map[id]int `json:"sequences"` // offsets
	Sessions  []id       `json:"sessions"`
	Prefixes  uint64     `json:"prefixes"` // checksum of the prefix cache
	Hidden    uint64     `json:"hidden"`   // checksum of the last hidden states
	Logits    uint64     `json:"logits"`   // ditto of the logits
}

func (r *replica) state(number uint64) state {
	s := state{Number: number, Sequences: map[id]int{}, Prefixes: r.tree.Checksum(),
		Sessions: slices.Sorted(maps.Keys(r.sessions))}
	if r.model.Stages == nil { // else the ranks have different rows
		s.Hidden, s.Logits = bits(r.hidden), bits(r.logits)
	}
	for of, seq := range r.sequences {
		s.Sequences[of] = seq.Offset()
	}
	return s
}

// bits returns a checksum of an array; 0 for nil.
func bits(x *mlx.Array) uint64 {
	if x == nil {
		return 0
	}
	h := uint64(14695981039346656037) // FNV-1a, by numbers instead of bytes
	for _, v := range x.Float32s() {
		h = (h ^ uint64(math.Float32bits(v))) * 1099511628211
	}
	return h
}

// differs says where a follower's state differs from the leader's; "" if it does not.
func (s state) differs(from state) string {
	for _, of := range slices.Sorted(maps.Keys(from.Sequences)) {
		if at, known := s.Sequences[of]; !known || at != from.Sequences[of] {
			return fmt.Sprintf("sequence %d is at position %d, on rank 0 at %d", of, at, from.Sequences[of])
		}
	}
	switch {
	case len(s.Sequences) != len(from.Sequences):
		return fmt.Sprintf("there are %d sequences, on rank 0 %d", len(s.Sequences), len(from.Sequences))
	case !slices.Equal(s.Sessions, from.Sessions):
		return fmt.Sprintf("the sessions are %v, on rank 0 %v", s.Sessions, from.Sessions)
	case s.Prefixes != from.Prefixes:
		return "the prefix cache has other entries"
	case s.Hidden != from.Hidden:
		return "the hidden states of the last step have other bits"
	case s.Logits != from.Logits:
		return "the logits of the last step have other bits"
	}
	return ""
}
