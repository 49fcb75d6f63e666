package runtime

// Bounds of a search for what was said before.
const (
	ngramLeast = 2   // tokens that must be alike
	ngramMost  = 16  // more make no better guess
	ngramTries = 256 // places that are compared, the newest first
)

// ngrams drafts from the text itself: it finds where the last tokens were said before, and guesses that the same follows.
// The zero value has seen no text.
type ngrams struct {
	newest map[[ngramLeast]int32]int32 // where the tokens after these begin, at the end of the text that was read
	older  []int32                     // of each position of the text, the one before it in newest; 0: none
}

// lookup drafts n tokens, or none where the end of the text has not been said before. Of places with as much alike it takes the
// newest. The tokens are those of the call before and what was added since, whose number the cost depends on, not the text's.
func (g *ngrams) lookup(tokens []int32, n int) []int32 {
	g.read(tokens)
	if n <= 0 || len(tokens) < ngramLeast {
		return nil
	}
	best, alike := int32(0), ngramLeast-1
	at := g.newest[pair(tokens, len(tokens))]
	for try := 0; at > 0 && try < ngramTries && alike < ngramMost; try++ {
		if k := same(tokens, int(at)); k > alike {
			best, alike = at, k
		}
		at = g.older[at]
	}
	if best == 0 {
		return nil
	}
	drafts := make([]int32, n)
	for i := range drafts {
		// What repeats itself goes on into what was drafted.
		if from := int(best) + i; from < len(tokens) {
			drafts[i] = tokens[from]
		} else {
			drafts[i] = drafts[from-len(tokens)]
		}
	}
	return drafts
}

// read enters the positions before the end of the text. The end itself has nothing after it.
func (g *ngrams) read(tokens []int32) {
	if g.newest == nil {
		g.newest = map[[ngramLeast]int32]int32{}
	}
	for at := len(g.older); at < len(tokens); at++ {
		before := int32(0)
		if at >= ngramLeast {
			before = g.newest[pair(tokens, at)]
			g.newest[pair(tokens, at)] = int32(at)
		}
		g.older = append(g.older, before)
	}
}

// pair is the key of a position: the tokens before it.
func pair(tokens []int32, at int) [ngramLeast]int32 {
	return [ngramLeast]int32(tokens[at-ngramLeast : at])
}

// same counts the tokens before a position that are those at the end of the text.
func same(tokens []int32, at int) int {
	n := 0
	for n < ngramMost && n < at && tokens[at-1-n] == tokens[len(tokens)-1-n] {
		n++
	}
	return n
}
