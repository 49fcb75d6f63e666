package ranks

import (
	"maps"
	"slices"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime/draft"
	"github.com/ingotml/ingot/runtime/load"
)

// checkInterval is the number of steps between comparisons of the ranks' states.
const checkInterval = 64

// log is the leader's side of the commands: the names of what they are about, and those that are not sent yet. It is
// used on the engine's thread.
type log struct {
	model     *load.Model
	tree      *prefix.Tree // nil: none
	last      id
	sequences map[*cache.Sequence]id
	sessions  map[*prefix.Session]id
	texts     map[*draft.Text]*sentText
	unsent    []byte
	steps     uint64
	interval  uint64
}

type sentText struct {
	id   id
	sent int // tokens
}

func newLog() log {
	return log{sequences: map[*cache.Sequence]id{}, sessions: map[*prefix.Session]id{},
		texts: map[*draft.Text]*sentText{}, interval: checkInterval}
}

// Attach tells the leader which model and prefix cache, or nil, it leads. It is called once, before anything else.
func (l *Leader) Attach(m *load.Model, t *prefix.Tree) {
	if l == nil {
		return
	}
	l.log.model, l.log.tree = m, t
	if t != nil {
		t.SetLog(prefixLog{l})
	}
}

// CheckEvery sets the number of steps between comparisons of the ranks' states. It is called before the first step.
func (l *Leader) CheckEvery(steps int) { l.log.interval = uint64(steps) }

// add logs a command.
func (l *Leader) add(c command) { l.log.unsent = encode(l.log.unsent, c) }

// Flush sends the commands that were logged since the last time.
func (l *Leader) Flush() {
	if l == nil || len(l.log.unsent) == 0 {
		return
	}
	b := l.log.unsent
	l.log.unsent = nil
	for _, f := range l.followers {
		if err := f.link.write(frameCommands, b); err != nil {
			l.lost(f, err)
		}
	}
}

// must flushes before an operation of the group, and panics with an *mlx.Error if the group has ended.
func (l *Leader) must() {
	l.Flush()
	if err := l.Err(); err != nil {
		panic(&mlx.Error{Message: err.Error()})
	}
}

// sequence returns the name of a sequence, which is new if it has none.
func (l *Leader) sequence(s *cache.Sequence) id {
	of := l.log.sequences[s]
	if of == 0 {
		l.log.last++
		of = l.log.last
		l.log.sequences[s] = of
	}
	return of
}

// Forward announces a forward pass, the rows whose logits follow, and whether nobody reads the hidden states. It
// returns the parts with the vectors that all ranks have.
func (l *Leader) Forward(parts []nn.Part, head []int, unread bool) []nn.Part {
	if l == nil {
		return parts
	}
	f := &forward{Head: head, Unread: unread}
	pipeline := l.log.model.Stages != nil // only rank 0 has the embeddings
	for _, p := range parts {
		q := part{Seq: l.sequence(p.Seq), At: p.Seq.Offset(), Tokens: p.Tokens, All: p.All, Text: p.Text,
			Shift: int32(p.Shift), Grid: p.Grid}
		for _, v := range p.Vectors {
			if pipeline {
				break
			}
			q.Vectors = append(q.Vectors, vectors{Row: v.Row, Rows: v.X.Dim(0), Width: v.X.Dim(1), Type: int(v.X.DType())})
		}
		f.Parts = append(f.Parts, q)
	}
	l.add(f)
	l.must()
	if pipeline {
		return parts
	}
	for i := range parts {
		for k, v := range parts[i].Vectors {
			x := mlx.AsType(v.X, mlx.Float32)
			parts[i].Vectors[k].X = shared(l.log.model.Ranks, x, v.X.DType())
		}
	}
	return parts
}

// Head announces the logits of rows of the last forward pass, beside those that Forward announced.
func (l *Leader) Head(rows []int) {
	if l != nil && l.log.model.Stages == nil { // in a pipeline, only rank 0 has the output head
		l.add(&head{rows})
		l.must()
	}
}

// EndStep ends a step with its hidden states and logits, which may be nil. Now and then the ranks compare their states.
func (l *Leader) EndStep(hidden, logits *mlx.Array) {
	if l == nil {
		return
	}
	if l.log.steps++; l.log.steps%l.log.interval != 0 || len(l.followers) == 0 {
		return
	}
	own := state{Number: l.log.steps, Sequences: map[id]int{}, Sessions: slices.Sorted(maps.Values(l.log.sessions))}
	if l.log.model.Stages == nil { // else the ranks have different rows
		own.Hidden, own.Logits = bits(hidden), bits(logits)
	}
	if l.log.tree != nil {
		own.Prefixes = l.log.tree.Checksum()
	} else {
		own.Prefixes = prefix.New(nil, 0).Checksum()
	}
	for s, of := range l.log.sequences {
		own.Sequences[of] = s.Offset()
	}
	l.mu.Lock()
	l.checks[own.Number] = &pendingCheck{own, len(l.followers), time.Now()}
	l.mu.Unlock()
	l.add(&check{own.Number})
	l.Flush()
}

// Begin logs cache.Sequence.Begin.
func (l *Leader) Begin(s *cache.Sequence) {
	if l != nil {
		l.add(&begin{l.sequence(s)})
	}
}

// Commit logs cache.Sequence.Commit.
func (l *Leader) Commit(s *cache.Sequence, rows int) {
	if l != nil {
		l.add(&commit{l.sequence(s), max(rows, 0)})
	}
}

// Free logs that a sequence is freed. If it is used again, it is another one for the followers.
func (l *Leader) Free(s *cache.Sequence) {
	if l == nil {
		return
	}
	if of := l.log.sequences[s]; of != 0 {
		l.add(&freeSequence{of})
		delete(l.log.sequences, s)
	}
}

// Forget logs models.Repeater.Forget.
func (l *Leader) Forget() {
	if l != nil {
		l.add(&forget{})
	}
}

// ClearCache logs mlx.Thread.ClearCache.
func (l *Leader) ClearCache() {
	if l != nil {
		l.add(&clear_{})
		l.Flush()
	}
}

// prefixLog logs what happens to the prefix cache.
type prefixLog struct{ *Leader }

func (l prefixLog) Began(s *prefix.Session, seq *cache.Sequence, keys []prefix.Key, most int) {
	l.log.last++
	own := l.log.last
	l.log.sessions[s] = own
	l.add(&sessionBegin{own, l.sequence(seq), s.Owner(), keys, most})
}

func (l prefixLog) Continued(s *prefix.Session, keys []prefix.Key) {
	l.add(&sessionContinue{l.log.sessions[s], keys})
}

func (l prefixLog) Snapshotted(s *prefix.Session, user bool) {
	l.add(&sessionSnapshot{l.log.sessions[s], user})
}

func (l prefixLog) Stored(s *prefix.Session, keys []prefix.Key) {
	l.add(&sessionStore{l.log.sessions[s], keys})
}

func (l prefixLog) Left(s *prefix.Session) {
	l.add(&sessionLeave{l.log.sessions[s]})
	delete(l.log.sessions, s)
}

func (l prefixLog) Evicted(node uint64) { l.add(&evict{node}) }
