package draft

// Bounds of an n-gram lookup.
const (
	minNgram      = 2   // tokens that must match
	maxNgram      = 16  // longer matches do not draft better
	maxNgramTries = 256 // occurrences to compare, latest first
)

// ngrams drafts from the text itself: it finds the longest match of the last tokens earlier in the text, and drafts the
// tokens that followed it. The zero value has seen no text.
type ngrams struct {
	latest   map[[minNgram]int32]int32 // by n-gram: the position after its latest occurrence
	previous []int32                   // by position: the position after the previous occurrence of its n-gram; 0: none
}

// lookup drafts n tokens, or none if the last tokens have not occurred before. Of equally long matches, the latest
// wins. tokens must extend those of the previous call. The cost depends on the number of added tokens, not on the
// length of the text.
func (g *ngrams) lookup(tokens []int32, n int) []int32 {
	g.index(tokens)
	if n <= 0 || len(tokens) < minNgram {
		return nil
	}
	source, matched := int32(0), minNgram-1
	at := g.latest[ngramKey(tokens, len(tokens))]
	for try := 0; at > 0 && try < maxNgramTries && matched < maxNgram; try++ {
		if k := matchLength(tokens, int(at)); k > matched {
			source, matched = at, k
		}
		at = g.previous[at]
	}
	if source == 0 {
		return nil
	}
	drafts := make([]int32, n)
	for i := range drafts {
		// If the match reaches the end of the text, assume that the text repeats itself: continue with the drafts.
		if from := int(source) + i; from < len(tokens) {
			drafts[i] = tokens[from]
		} else {
			drafts[i] = drafts[from-len(tokens)]
		}
	}
	return drafts
}

// index adds the n-grams of new tokens. It leaves out the last n-gram of the text, which no token follows yet.
func (g *ngrams) index(tokens []int32) {
	if g.latest == nil {
		g.latest = map[[minNgram]int32]int32{}
	}
	for at := len(g.previous); at < len(tokens); at++ {
		before := int32(0)
		if at >= minNgram {
			before = g.latest[ngramKey(tokens, at)]
			g.latest[ngramKey(tokens, at)] = int32(at)
		}
		g.previous = append(g.previous, before)
	}
}

// ngramKey returns the n-gram before a position.
func ngramKey(tokens []int32, at int) [minNgram]int32 {
	return [minNgram]int32(tokens[at-minNgram : at])
}

// matchLength counts the tokens before a position that equal the last tokens of the text.
func matchLength(tokens []int32, at int) int {
	n := 0
	for n < maxNgram && n < at && tokens[at-1-n] == tokens[len(tokens)-1-n] {
		n++
	}
	return n
}
