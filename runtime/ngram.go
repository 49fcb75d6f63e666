package runtime

// Bounds of a search for what was said before.
const (
	minNgram      = 2   // tokens that must be alike
	maxNgram      = 16  // more make no better guess
	maxNgramTries = 256 // places that are compared, the newest first
)

// ngrams drafts from the text itself: it finds where the last tokens were said before, and guesses that the same follows.
// The zero value has seen no text.
type ngrams struct {
	latest   map[[minNgram]int32]int32 // where the tokens after these begin, at the end of the text that was read
	previous []int32                   // of each position of the text, the one before it in newest; 0: none
}

// lookup drafts n tokens, or none where the end of the text has not been said before. Of places with as much alike it takes the
// newest. The tokens are those of the call before and what was added since, whose number the cost depends on, not the text's.
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
		// What repeats itself goes on into what was drafted.
		if from := int(source) + i; from < len(tokens) {
			drafts[i] = tokens[from]
		} else {
			drafts[i] = drafts[from-len(tokens)]
		}
	}
	return drafts
}

// read enters the positions before the end of the text. The end itself has nothing after it.
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

// pair is the key of a position: the tokens before it.
func ngramKey(tokens []int32, at int) [minNgram]int32 {
	return [minNgram]int32(tokens[at-minNgram : at])
}

// same counts the tokens before a position that are those at the end of the text.
func matchLength(tokens []int32, at int) int {
	n := 0
	for n < maxNgram && n < at && tokens[at-1-n] == tokens[len(tokens)-1-n] {
		n++
	}
	return n
}
