package normalize

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
)

// charsmap is the precompiled map of a SentencePiece normalizer: a double-array trie (the layout of Darts-clone) from
// strings to offsets of replacements. The file is not trusted: each index is checked when it is used.
type charsmap struct {
	trie []uint32
	pool string // the replacements, each terminated by a zero byte
}

func newCharsmap(data []byte) (*charsmap, error) {
	if len(data) < 4 {
		return nil, fmt.Errorf("a charsmap of %d bytes", len(data))
	}
	size := binary.LittleEndian.Uint32(data)
	data = data[4:]
	if int64(size) > int64(len(data)) || size%4 != 0 || size == 0 {
		return nil, fmt.Errorf("a charsmap with a trie of %d bytes in %d", size, len(data))
	}
	m := &charsmap{trie: make([]uint32, size/4), pool: string(data[size:])}
	for i := range m.trie {
		m.trie[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	if !utf8.ValidString(m.pool) {
		return nil, fmt.Errorf("a charsmap whose replacements are not UTF-8")
	}
	return m, nil
}

// walk calls found with the length and the value of each entry that is a prefix of s; false stops it. It returns how
// much of s it read: the trie of a hostile file may lead through all of it.
func (m *charsmap) walk(s string, found func(length int, value uint32) bool) (read int) {
	at := uint32(0)
	unit := m.trie[0]
	at ^= unit >> 10 << (unit & (1 << 9) >> 6)
	i := 0
	for ; i < len(s) && s[i] != 0; i++ {
		at ^= uint32(s[i])
		if at >= uint32(len(m.trie)) {
			return i
		}
		unit = m.trie[at]
		if unit&(1<<31|0xff) != uint32(s[i]) {
			return i
		}
		at ^= unit >> 10 << (unit & (1 << 9) >> 6)
		if unit>>8&1 != 0 && at < uint32(len(m.trie)) && !found(i+1, m.trie[at]&(1<<31-1)) {
			return i
		}
	}
	return i
}

// replacement returns the text at an offset.
func (m *charsmap) replacement(at uint32) (string, bool) {
	if at >= uint32(len(m.pool)) {
		return "", false
	}
	s, _, _ := strings.Cut(m.pool[at:], "\x00")
	return s, utf8.RuneStart(m.pool[at])
}

// first returns the replacement of the shortest entry that is a prefix of s. The reference looks up graphemes this way.
func (m *charsmap) first(s string) (to string, ok bool) {
	m.walk(s, func(_ int, value uint32) bool {
		to, ok = m.replacement(value)
		return false
	})
	return to, ok
}

// longest returns the replacement of the longest entry that is a prefix of s, its length, and how much of s it read.
// This is SentencePiece's rule.
func (m *charsmap) longest(s string) (to string, length, read int) {
	value := uint32(0)
	read = m.walk(s, func(n int, v uint32) bool {
		length, value = n, v
		return true
	})
	if length > 0 {
		var ok bool
		if to, ok = m.replacement(value); !ok {
			return "", 0, read
		}
	}
	return to, length, read
}

// precompiled is the Precompiled normalizer: it looks up a grapheme of at most 5 bytes as a whole, and its characters
// separately if it is longer or not found (normalizers/precompiled.rs of the reference).
type precompiled struct{ *charsmap }

func newPrecompiled(c jsonfile.Component) (Normalizer, error) {
	text, err := c.Field("precompiled_charsmap", jsonfile.StringNode)
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(text.Text)
	if err != nil {
		return nil, c.Invalid("has a precompiled_charsmap that is not base64")
	}
	m, err := newCharsmap(data)
	if err != nil {
		return nil, c.Invalid("has %v", err)
	}
	return precompiled{m}, nil
}

const maxGraphemeBytes = 5

func (p precompiled) Normalize(pass *Pass, s string) (string, error) {
	t := chars.Properties()
	var b strings.Builder
	last := 0
	replace := func(start, end int) bool {
		to, ok := p.first(s[start:end])
		if ok {
			b.WriteString(s[last:start])
			b.WriteString(to)
			last = end
		}
		return ok
	}
	for i := 0; i < len(s); {
		if b.Len() > pass.Room {
			return "", pass.tooLong()
		}
		end := chars.GraphemeEnd(t, s, i)
		if err := pass.Spend(4 * (end - i)); err != nil {
			return "", err
		}
		if end-i > maxGraphemeBytes || !replace(i, end) {
			for i < end {
				_, n := utf8.DecodeRuneInString(s[i:])
				replace(i, i+n)
				i += n
			}
		}
		i = end
	}
	if last == 0 && b.Len() == 0 {
		return s, nil
	}
	b.WriteString(s[last:])
	return b.String(), nil
}
