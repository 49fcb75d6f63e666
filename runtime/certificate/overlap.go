package certificate

import (
	"fmt"
	"hash/maphash"
	"regexp"
	"strings"
)

// Run is the number of words or signs in a row that two texts may not share.
const Run = 13

var words = regexp.MustCompile(`[\pL\pN_]+|[^\pL\pN_\s]`)

// CheckOverlap returns [ErrOverlap] if a text shares a run of [Run] words or signs, or a shorter whole document, with a
// text that was used for calibration. Letter case and spaces do not count.
func CheckOverlap(text string, calibration []string) error {
	seed := maphash.MakeSeed()
	list := split(text)
	runs := map[uint64]bool{}
	for i := 0; i+Run <= len(list); i++ {
		runs[hash(seed, list[i:i+Run])] = true
	}
	spaced := " " + strings.Join(list, " ") + " "
	for _, document := range calibration {
		list := split(document)
		n := min(Run, len(list))
		for i := 0; n > 0 && i+n <= len(list); i++ {
			run := list[i : i+n]
			// The hash may collide, so the words decide.
			if (n < Run || runs[hash(seed, run)]) && strings.Contains(spaced, " "+strings.Join(run, " ")+" ") {
				return fmt.Errorf("%w: both have %q; use another text", ErrOverlap, strings.Join(run, " "))
			}
		}
	}
	return nil
}

func split(text string) []string { return words.FindAllString(strings.ToLower(text), -1) }

func hash(seed maphash.Seed, run []string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, w := range run {
		_, _ = h.WriteString(w)
		_ = h.WriteByte(' ')
	}
	return h.Sum64()
}
