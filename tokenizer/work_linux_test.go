package tokenizer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/internal/limits/work"
)

// TestEncodeGrowth: no tokenizer takes longer than the work that it spends, so that the bound of the work bounds the
// time.
func TestEncodeGrowth(t *testing.T) {
	const perUnit, fixed = 30 * time.Nanosecond, 20 * time.Millisecond
	tokenizers := hostileTokenizers(t)
	delete(tokenizers, "backtracking") // spends its time
	charges := func(n int) runtest.Charges {
		all := runtest.Charges{}
		for name, tok := range tokenizers {
			for unit, text := range hostileTexts(n) {
				all[fmt.Sprintf("%s of %.20q", name, unit)] = func() int64 {
					w := work.Start(t.Context(), encodeLimits(len(text)))
					_, _ = tok.encode(w, text) // what is too much is an error, whose cost counts too
					return w.Spent()
				}
			}
		}
		return all
	}
	runtest.CheckCharges(t, charges(5_000), charges(50_000), perUnit, fixed)
}

// TestDecodeGrowth: decoding takes linear time in the tokens' bytes, whatever the decoder is.
func TestDecodeGrowth(t *testing.T) {
	const perByte, fixed = 3 * time.Microsecond, 20 * time.Millisecond
	half := strings.Repeat("a", 500)
	fused := func(part string) string { return `{"type":"Sequence","decoders":[{"type":"Fuse"},` + part + `]}` }
	decoders := map[string]string{
		"replaced":   fused(`{"type":"Replace","pattern":{"String":"` + half + "b" + half + `c"},"content":"x"}`),
		"stripped":   fused(`{"type":"Strip","content":"a","start":256,"stop":256}`),
		"suffixes":   fused(`{"type":"BPEDecoder","suffix":"` + half + `b"}`),
		"fallback":   `{"type":"ByteFallback"}`,
		"expression": `{"type":"Replace","pattern":{"Regex":"(?:a|aa)+c"},"content":"x"}`,
		"metaspace":  `{"type":"Metaspace","replacement":"a","prepend_scheme":"always"}`,
	}
	charges := func(n int) runtest.Charges {
		all := runtest.Charges{}
		for name, decoder := range decoders {
			model := `{"type":"WordLevel","unk_token":"a","vocab":{"a":0,"b":1,"<0xE2>":2,"` + strings.Repeat("a", 60) + `":3}}`
			tok, err := Load([]byte(tokenizerOf(model, map[string]string{"decoder": decoder})), nil)
			if err != nil {
				t.Fatal(err)
			}
			for id := range int32(4) {
				for _, other := range []int32{id, 1} {
					token, _ := tok.Token(id)
					ids := make([]int32, n/len(token))
					for i := range ids {
						if ids[i] = id; i%501 == 500 {
							ids[i] = other
						}
					}
					all[fmt.Sprintf("%s of %.20s, %d", name, token, other)] = func() int64 {
						if _, err := tok.Decode(ids, false); err != nil {
							t.Error(err)
						}
						return int64(n)
					}
				}
			}
		}
		return all
	}
	runtest.CheckCharges(t, charges(3_000), charges(30_000), perByte, fixed)
}
