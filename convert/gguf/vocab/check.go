package vocab

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/tokenizer/chars"
)

// Notes lists what a file says of its tokenizer and what is ignored: ids of special tokens that are not in the
// vocabulary. Call it after [Files] has accepted the metadata.
func Notes(m gguf.Metadata) []string {
	tokens, ok := m.Lookup(prefix + "tokens")
	if !ok {
		return nil
	}
	var notes []string
	for _, key := range m.Keys() {
		if !strings.HasPrefix(key, prefix) || !strings.HasSuffix(key, "_token_id") {
			continue
		}
		v, _ := m.Lookup(key)
		n, ok := v.Int(0)
		if ok && !v.IsArray && n != -1 && (n < 0 || n >= int64(tokens.Len)) {
			notes = append(notes, fmt.Sprintf("%s is %d, but the vocabulary has %d tokens: it is ignored", key, n, tokens.Len))
		}
	}
	return notes
}

// again is the remedy for a file whose vocabulary is broken.
const again = "; download the file again, or convert the model again"

// refuse returns an error about a key.
func refuse(key, format string, args ...any) error {
	return fmt.Errorf("%w: %s%s: "+format+again, append([]any{ErrVocabulary, prefix, key}, args...)...)
}

// check checks what the tokenizer's files would be refused for, in the terms of the file.
func (v *vocabulary) check() error {
	switch v.model {
	case "gpt2", "gemma4":
		if _, ok := pres[v.pre]; !ok && v.model == "gpt2" {
			return fmt.Errorf("%w: %spre = %q: this version does not know how it splits text (known: %s)",
				ErrVocabulary, prefix, clip.Line(v.pre, maxQuoted), strings.Join(Kinds(), ", "))
		}
		return v.checkMerges()
	case "llama", "t5":
		return v.checkPieces()
	}
	return nil
}

// checkMerges checks the merges of a BPE.
func (v *vocabulary) checkMerges() error {
	if list, ok := v.Lookup(prefix + "merges"); !ok {
		return refuse("merges", "it is missing, but tokenizer.ggml.model is %q, which needs it", v.model)
	} else if list.Strings() == nil && list.Len > 0 || !list.IsArray {
		return refuse("merges", "it is %v, want an array of strings", list)
	}
	ids := make(map[string]bool, len(v.tokens))
	for _, text := range v.tokens {
		ids[text] = true
	}
	merges, err := v.Texts(prefix + "merges")
	if err != nil {
		return err
	}
	for i, merge := range merges {
		at := strings.Index(merge[min(1, len(merge)):], " ") + 1
		if at == 0 || at+1 == len(merge) {
			return refuse("merges", "element %d is %q, want two tokens with a space between them", i, clip.Text(merge, 40))
		}
		left, right := merge[:at], merge[at+1:]
		for _, part := range []string{left, right, left + right} {
			if !ids[part] {
				return refuse("merges", "element %d is %q, but %q is not in %stokens", i, clip.Text(merge, 40),
					clip.Text(part, 40), prefix)
			}
		}
	}
	return nil
}

// checkPieces checks the tokens of a vocabulary of SentencePiece.
func (v *vocabulary) checkPieces() error {
	if v.scores == nil {
		return refuse("scores", "it is missing, but tokenizer.ggml.model is %q, which needs it", v.model)
	}
	bytes := 0
	seen := make(map[string]int, len(v.tokens))
	for i, text := range v.tokens {
		other, twice := seen[text]
		kind := v.kind(i)
		_, isByte := chars.ByteToken(text)
		switch {
		case kind < typeNormal || kind > typeByte:
			return refuse("token_type", "element %d is %d, want 1 to 6", i, kind)
		case len(text) > limits.TokenBytes || !utf8.ValidString(text) || strings.ContainsRune(text, 0):
			return refuse("tokens", "element %d is longer than %d bytes or not text", i, limits.TokenBytes)
		case twice && text != "":
			return refuse("tokens", "elements %d and %d are both %q", other, i, clip.Text(text, 40))
		case kind == typeByte && !isByte:
			return refuse("token_type", "element %d is 6 (byte), but the token is %q, want <0x00> to <0xFF>", i,
				clip.Text(text, 40))
		case kind == typeByte:
			bytes++
		}
		seen[text] = i
	}
	if bytes != 0 && bytes != 256 {
		return refuse("token_type", "%d elements are 6 (byte), want one for each of the 256 bytes", bytes)
	}
	return nil
}
