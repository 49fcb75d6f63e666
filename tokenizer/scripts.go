package tokenizer

import (
	_ "embed"
	"sync"
)

// Scripts are those of the reference (Unicode 9, with Kana as Han), by numbers of testdata/gen/tok_scripts.py; 0 goes with
// any.
//
//go:embed scripts.bin
var scriptRuns []byte

var scripts = sync.OnceValue(func() *propertyTable { return newPropertyTable(scriptRuns) })

// unicodeScripts cuts where the script changes (pre_tokenizers/unicode_scripts of the reference). What precedes the first
// character of a script, such as a space, is lost there, and so it is here.
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
