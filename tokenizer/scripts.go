package tokenizer

import (
	_ "embed"
	"sync"
)

// Scripts are the reference's (Unicode 9, with Kana as Han), with the numbers of testdata/gen/tok_scripts.py. Script 0
// joins any other.
//
//go:embed scripts.bin
var scriptRuns []byte

var scripts = sync.OnceValue(func() *propertyTable { return newPropertyTable(scriptRuns) })

// unicodeScripts splits where the script changes (pre_tokenizers/unicode_scripts of the reference). As in the
// reference, text before the first character of a script, for example a space, is lost.
type unicodeScripts struct{}

func (unicodeScripts) pieces(s string, first bool, emit emitPiece) error {
	t := scripts()
	start, last := -1, uint8(0)
	for i, c := range s {
		script := t.at(c)
		if script == 0 || script == last {
			continue
		}
		if start >= 0 {
			if err := emit(s[start:i], first && start == 0); err != nil {
				return err
			}
		}
		start, last = i, script
	}
	if start < 0 {
		return nil
	}
	return emit(s[start:], first && start == 0)
}
