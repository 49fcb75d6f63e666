package encode

import (
	"fmt"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/trie"
)

// unigram segments a piece into the tokens with the highest sum of scores (models/unigram/model.rs of the reference).
type unigram struct {
	*vocabulary
	trie     *trie.Trie
	scores   []float64
	unk      int32   // -1: none
	unkScore float64 // of a character that is not a token
	bytes    *[256]int32
	narrow   bool // use SentencePiece's float32 arithmetic and unknown tokens instead of the library tokenizers'
	pool     sync.Pool
}

const unkPenalty = 10

// newUnigram returns a model of tokens, which are indexed by id. Of equal tokens the last id wins.
func newUnigram(tokens []string, scores []float64, unk int32, byteFallback bool) *unigram {
	m := &unigram{vocabulary: denseVocabulary(tokens), scores: scores, unk: unk}
	entries := make([]trie.Entry, len(tokens))
	least := math.Inf(1)
	for i, token := range tokens {
		entries[i] = trie.Entry{Text: token, ID: int32(i)}
		least = min(least, scores[i])
	}
	m.unkScore = least - unkPenalty
	m.trie = trie.New(entries)
	if byteFallback {
		m.bytes = m.byteTokens()
	}
	return m
}

// byteTokens returns the ids of <0x00> to <0xFF>, -1 for missing ones.
func (v *vocabulary) byteTokens() *[256]int32 {
	var ids [256]int32
	for b := range ids {
		id, ok := v.ID(fmt.Sprintf("<0x%02X>", b))
		if !ok {
			id = -1
		}
		ids[b] = id
	}
	return &ids
}

// Size counts equal tokens separately, as the reference does.
func (m *unigram) Size() int { return int(m.top) }

func readUnigram(r *jsonfile.Reader) (Model, error) {
	c := jsonfile.Component{Node: &jsonfile.Node{Kind: jsonfile.ObjectNode}, Part: "model", Name: "Unigram"}
	var tokens []string
	var scores []float64
	unk := int64(-1)
	byteFallback, hasVocab := false, false
	err := r.Object(func(key []byte) error {
		switch name := string(key); name {
		case "vocab":
			hasVocab = true
			return r.Within(name, func() (err error) {
				tokens, scores, err = readScores(r)
				return err
			})
		case "unk_id", "byte_fallback":
			return r.Within(name, func() error {
				v, err := r.Value()
				switch {
				case err != nil:
					return err
				case name == "byte_fallback" && v.Kind == jsonfile.BoolNode:
					byteFallback = v.Text != ""
				case name == "unk_id" && v.Kind == jsonfile.NullNode:
					unk = -1
				case name == "unk_id" && v.Kind == jsonfile.NumberNode:
					if unk, err = strconv.ParseInt(v.Text, 10, 32); err != nil || unk < 0 {
						return c.Invalid("has %s as unk_id", v.Text)
					}
				default:
					return c.Invalid("has %v as %s", v.Kind, name)
				}
				return nil
			})
		}
		return r.Skip()
	})
	switch {
	case err != nil:
		return nil, err
	case !hasVocab:
		return nil, c.Invalid("has no vocab")
	case unk >= int64(len(tokens)):
		return nil, c.Invalid("has the unk_id %d and %d tokens", unk, len(tokens))
	}
	return newUnigram(tokens, scores, int32(unk), byteFallback), nil
}

// readScores parses [[token, score], ...].
func readScores(r *jsonfile.Reader) (tokens []string, scores []float64, err error) {
	err = r.Array(func(i int) error {
		at := r.Pos
		n := 0
		err := r.Array(func(j int) error {
			n++
			if j == 0 {
				s, err := r.Str()
				if len(s) > limits.TokenBytes {
					return tooLong(r, at, i, len(s))
				}
				tokens = append(tokens, string(s))
				return err
			}
			text, err := r.Number()
			if err != nil {
				return err
			}
			score, err := jsonfile.ParseScore(string(text))
			if err != nil {
				return r.FailAt(at, "the score %s of token %d is out of range", text, i)
			}
			if scores = append(scores, score); len(scores) != len(tokens) {
				return r.FailAt(at, "token %d is not [token, score]", i)
			}
			return nil
		})
		if err == nil && (n != 2 || i == jsonfile.MaxID) {
			return r.FailAt(at, "token %d is not [token, score]", i)
		}
		return err
	})
	return tokens, scores, err
}

func (m *unigram) Encoder() encoder {
	if e, ok := m.pool.Get().(*unigramEncoder); ok {
		return e
	}
	return &unigramEncoder{m: m, cache: newWordCache()}
}

type unigramEncoder struct {
	m     *unigram
	cache *wordCache
	ends  []bestEnd
}

// bestEnd is the last token of the best segmentation of the text up to a position.
type bestEnd struct {
	score float64
	start int32 // -1: none found yet
	id    int32
}

func (e *unigramEncoder) Release() {
	if cap(e.ends) > maxKept {
		e.ends = nil
	}
	e.m.pool.Put(e)
}

func (e *unigramEncoder) Append(w *work.Meter, ids []int32, piece string) ([]int32, error) {
	slot := e.cache.slot(piece)
	if slot != nil && slot.key == piece {
		return append(ids, slot.ids...), nil
	}
	n := len(ids)
	ids, err := e.tokenize(w, ids, piece)
	if err == nil && slot != nil {
		slot.set(piece, ids[n:])
	}
	return ids, err
}

func (e *unigramEncoder) tokenize(w *work.Meter, ids []int32, s string) ([]int32, error) {
	m := e.m
	if len(s) > math.MaxInt32-1 {
		return ids, fault.Errorf(fault.ErrToken, "encode: a text of %d bytes is too long", len(s))
	}
	if err := e.viterbi(w, s); err != nil {
		return ids, err
	}
	// Follow the best segmentation backwards. A run of unknown characters is one token.
	n := len(ids)
	for end := len(s); end > 0; {
		best := e.ends[end]
		start := int(best.start)
		if best.id == m.unk {
			for start > 0 && e.ends[start].id == m.unk {
				start = int(e.ends[start].start)
			}
			ids = m.unknown(ids, s[start:end])
		} else {
			ids = append(ids, best.id)
		}
		end = start
	}
	for i, j := n, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
	return ids, nil
}

// viterbi fills ends. It adds and compares scores in the reference's order, which decides between equal sums.
func (e *unigramEncoder) viterbi(w *work.Meter, s string) error {
	m := e.m
	if cap(e.ends) < len(s)+1 {
		e.ends = make([]bestEnd, len(s)+1)
	}
	ends := e.ends[:len(s)+1]
	e.ends = ends
	for i := range ends {
		ends[i] = bestEnd{start: -1}
	}
	nodes := m.trie.Nodes
	reached := 0 // the last end that has a score
	for start := 0; start < len(s); {
		if m.narrow && math.Abs(ends[start].score) > largestScore {
			rebase(ends[start : reached+1])
		}
		here := ends[start].score
		width := 1
		if s[start] >= utf8.RuneSelf {
			_, width = utf8.DecodeRuneInString(s[start:])
		}
		single := false
		node := int32(0)
		i := start
		for ; i < len(s); i++ {
			child := nodes[node].Base + int32(s[i])
			slot := &nodes[child]
			if slot.Parent != node || child == 0 {
				break
			}
			node = child
			if id := slot.ID; id >= 0 {
				score := m.scores[id] + here
				if m.narrow {
					score = float64(float32(score))
				}
				reached = max(reached, i+1)
				if to := &ends[i+1]; to.start < 0 || score > to.score {
					*to = bestEnd{score, int32(start), id}
				}
				if i+1-start == width {
					single = true
				}
			}
		}
		if !single {
			score := m.unkScore + here
			if m.narrow {
				score = float64(float32(score))
			}
			reached = max(reached, start+width)
			if to := &ends[start+width]; to.start < 0 || score > to.score {
				if m.unk < 0 {
					return fault.Errorf(fault.ErrToken, "encode: %q has no token, and the model has no unk_id", s[start:start+width])
				}
				*to = bestEnd{score, int32(start), m.unk}
			}
		}
		if err := w.Spend(symbolWork + 4*(i-start)); err != nil {
			return err
		}
		start += width
	}
	return nil
}

// largestScore is where SentencePiece begins its sum again, so that float32 keeps small differences.
const largestScore = 100_000

// rebase subtracts the score of the first end from all.
func rebase(ends []bestEnd) {
	from := float32(ends[0].score)
	for i := range ends {
		if i == 0 || ends[i].start >= 0 {
			ends[i].score = float64(float32(ends[i].score) - from)
		}
	}
}

// unknown appends the ids of a run of unknown characters in reverse order.
func (m *unigram) unknown(ids []int32, run string) []int32 {
	if id, ok := m.ID(run); ok && !m.narrow {
		return append(ids, id)
	}
	if m.bytes == nil {
		return append(ids, m.unk)
	}
	n := len(ids)
	for i := len(run) - 1; i >= 0; i-- {
		id := m.bytes[run[i]]
		if id < 0 {
			return append(ids[:n], m.unk)
		}
		ids = append(ids, id)
	}
	return ids
}
