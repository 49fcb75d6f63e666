package vocab

import (
	"fmt"
	"strings"
)

// RWKV is the name of RWKV's vocabulary in a folder, a list of tokens, which becomes a tokenizer.json.
const RWKV = "rwkv_vocab_v20230424.txt"

// RWKVEnd is token 0 of RWKV's vocabulary, which is not in the list.
const RWKVEnd = "<|rwkv_tokenizer_end_of_text|>"

// rwkv makes the list: a line for each token with its id, its bytes as a literal of Python, and how many they are. A
// file has what is between the quotes of the literal.
func (v *vocabulary) rwkv() []byte {
	var out strings.Builder
	for id, text := range v.tokens {
		if id == 0 || v.kind(id) == typeUnused {
			continue
		}
		n := 0
		for rest := text; rest != ""; n++ {
			size := 1
			if rest[0] == '\\' {
				if size = 2; strings.HasPrefix(rest, `\x`) {
					size = 4
				}
			}
			rest = rest[min(size, len(rest)):]
		}
		fmt.Fprintf(&out, "%d b'%s' %d\n", id, text, n)
	}
	return []byte(out.String())
}
