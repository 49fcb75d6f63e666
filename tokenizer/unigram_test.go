package tokenizer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/tokenizer/sentencepiece"
)

// A user-defined piece beats all others, and the longest of several wins: the ids are those of the library
// sentencepiece 0.2.3.
func TestUserDefinedUnigram(t *testing.T) {
	message := func(field byte, body []byte) []byte {
		return append(binary.AppendUvarint([]byte{field<<3 | 2}, uint64(len(body))), body...)
	}
	var model []byte
	for _, p := range []struct {
		text  string
		score float32
		kind  byte
	}{
		{"<unk>", 0, sentencepiece.Unknown}, {"a", -4.5, 1}, {"t", -4.5, 1}, {"▁", -1.7, 1}, {"▁at", -7, 1},
		{"▁▁", 0, sentencepiece.UserDefined}, {"ab", 0, sentencepiece.UserDefined}, {"abc", 0, sentencepiece.UserDefined},
		{"c", 0, sentencepiece.UserDefined},
	} {
		piece := binary.LittleEndian.AppendUint32(append(message(1, []byte(p.text)), 2<<3|5), math.Float32bits(p.score))
		model = append(model, message(1, append(piece, 3<<3, p.kind))...)
	}
	model = append(model, message(2, []byte{3 << 3, 1})...)            // Unigram
	model = append(model, message(3, []byte{3 << 3, 0, 4 << 3, 0})...) // no space before the text, all spaces are kept
	tok, err := LoadSentencePiece(model, nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{
		"a  at": {1, 5, 1, 2}, "a at": {1, 4}, "abc": {7}, "abcab": {7, 6},
	} {
		if got, err := tok.Encode(t.Context(), text, false); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

// The library adds scores in float32 and begins the sum of a long text again and again, which decides near-ties. The
// digest is that of the ids of version 0.2.3.
func TestLongUnigram(t *testing.T) {
	var b strings.Builder
	for x, i := uint32(1), 0; i < 400_000; i++ {
		x = (x*1103515245 + 12345) % (1 << 31)
		b.WriteByte("abcdefgh eitaon"[(x>>16)%15])
	}
	ids, err := loadSentencePiece(t, "sp-unigram").Encode(t.Context(), b.String(), false)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(strings.Trim(fmt.Sprint(ids), "[]")))
	const want = "3b7d4963a506205f3e582ac4ed6aaac57e47b1364f67b6fa1d748ea7690fafca"
	if got := hex.EncodeToString(sum[:]); len(ids) != 360_985 || got != want {
		t.Errorf("%d ids with the digest %s, want 360985 with %s", len(ids), got, want)
	}
}
