package pretokenize

import (
	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/chars"
)

// unicodeScripts splits where the script changes (pre_tokenizers/unicode_scripts of the reference). As in the
// reference, text before the first character of a script, for example a space, is lost.
type unicodeScripts struct{}

func (unicodeScripts) Pieces(_ *work.Meter, s string, first bool, emit Emit) error {
	t := chars.Scripts()
	start, last := -1, uint8(0)
	for i, c := range s {
		script := t.At(c)
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
