package terminal

import (
	"bytes"
	"unicode/utf8"
)

// key is a key or a combination of keys that the user pressed.
type key int

const (
	keyNone key = iota // an unknown sequence
	keyText            // a typed character
	keyEnter
	keyNewline // inserts a line break
	keyInterrupt
	keyEnd // Ctrl-D: delete, or end of input if the message is empty
	keySuspend
	keyClear
	keyLeft
	keyRight
	keyUp
	keyDown
	keyOlder // in the history, from any row
	keyNewer
	keyWordLeft
	keyWordRight
	keyHome
	keyLast
	keyBackspace
	keyDelete
	keyKillWordLeft
	keyKillWordRight
	keyKillToHome
	keyKillToLast
	keyYank
	keySwap
	keyPaste // the whole pasted text
)

// controls maps control characters, by readline's letters.
var controls = map[byte]key{
	'A': keyHome, 'B': keyLeft, 'C': keyInterrupt, 'D': keyEnd, 'E': keyLast, 'F': keyRight, 'H': keyBackspace,
	'J': keyEnter,
	'K': keyKillToLast, 'L': keyClear, 'M': keyEnter, 'N': keyNewer, 'P': keyOlder, 'T': keySwap, 'U': keyKillToHome,
	'W': keyKillWordLeft, 'Y': keyYank, 'Z': keySuspend,
}

// alts maps the characters that follow an escape character.
var alts = map[byte]key{
	'b': keyWordLeft, 'f': keyWordRight, 'd': keyKillWordRight, 127: keyKillWordLeft, 8: keyKillWordLeft, '\r': keyNewline,
	'\n': keyNewline,
}

// finals maps the final bytes of sequences without a number, such as ESC [ A and ESC O A.
var finals = map[byte]key{
	'A': keyUp, 'B': keyDown, 'C': keyRight, 'D': keyLeft, 'H': keyHome, 'F': keyLast,
}

// numbered maps the numbers of sequences such as ESC [ 3 ~.
var numbered = map[string]key{
	"1": keyHome, "7": keyHome, "4": keyLast, "8": keyLast, "3": keyDelete,
}

// byWord maps keys to their variants with Ctrl or Alt, which move by words.
var byWord = map[key]key{keyLeft: keyWordLeft, keyRight: keyWordRight, keyDelete: keyKillWordRight}

var (
	pasteBegin = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// maxSequence bounds an escape sequence in bytes. Longer input is not a sequence.
const maxSequence = 32

// decode decodes the first key of the input and returns the number of bytes it takes, or 0 if the key is incomplete.
// text is the typed or pasted text.
func decode(b []byte) (k key, text []byte, n int) {
	switch {
	case len(b) == 0:
		return keyNone, nil, 0
	case b[0] == '\x1b':
		return decodeEscape(b)
	case b[0] == 127:
		return keyBackspace, nil, 1
	case b[0] < ' ':
		return controls[b[0]+'@'], nil, 1
	}
	if !utf8.FullRune(b) && len(b) < utf8.UTFMax {
		return keyNone, nil, 0
	}
	r, size := utf8.DecodeRune(b)
	if r == utf8.RuneError && size == 1 || !Plain(r) {
		return keyNone, nil, size
	}
	return keyText, b[:size], size
}

func decodeEscape(b []byte) (key, []byte, int) {
	if bytes.HasPrefix(b, pasteBegin) {
		rest := b[len(pasteBegin):]
		if end := bytes.Index(rest, pasteEnd); end >= 0 {
			return keyPaste, rest[:end], len(pasteBegin) + end + len(pasteEnd)
		}
		return keyNone, nil, 0
	}
	if len(b) == 1 {
		return keyNone, nil, 0
	}
	switch b[1] {
	case '[':
		end := bytes.IndexFunc(b[2:], func(r rune) bool { return r >= '@' && r <= '~' })
		switch {
		case end >= maxSequence, end < 0 && len(b) > maxSequence:
			return keyNone, nil, 2
		case end < 0:
			return keyNone, nil, 0
		}
		return sequence(string(b[2:2+end]), b[2+end]), nil, 3 + end
	case 'O':
		if len(b) == 2 {
			return keyNone, nil, 0
		}
		return finals[b[2]], nil, 3
	case '\x1b': // the first Esc was pressed alone
		return keyNone, nil, 1
	}
	return alts[b[1]], nil, 2
}

// sequence returns the key of ESC [ ARGUMENTS FINAL. The optional second argument encodes the modifiers: 1 plus 1 for
// Shift, 2 for Alt and 4 for Ctrl.
func sequence(arguments string, final byte) key {
	first, held, _ := bytes.Cut([]byte(arguments), []byte(";"))
	k := finals[final]
	if final == '~' {
		k = numbered[string(first)]
	}
	if word, ok := byWord[k]; ok && len(held) == 1 && (held[0]-'1')&(2|4) != 0 {
		return word
	}
	return k
}
