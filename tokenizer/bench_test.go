package tokenizer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/tokenizer/tokenizertest"
)

const benchText = "The quick brown fox doesn't jump over 12 lazy dogs; it's the model's 3rd layer, naïve café, " +
	"func main() {\n\tfmt.Println(\"hello, world\")\n}\n\n Привет, мир! 你好，世界。 これはテストです。 🙂\n"

func BenchmarkEncode(b *testing.B) {
	text := strings.Repeat(benchText, 500)
	for _, name := range tokenizertest.Trained {
		b.Run(name, func(b *testing.B) {
			tok := loadFixture(b, name)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tok.Encode(b.Context(), text, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodeOneWord(b *testing.B) {
	text := strings.Repeat("theandof", 1<<17)
	tok := loadFixture(b, "llama3")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := tok.Encode(b.Context(), text, false); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoad loads a tokenizer.json of 262,656 tokens.
func BenchmarkLoad(b *testing.B) {
	text := largeFile()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(text, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// largeFile returns a tokenizer.json with 512 tokens of three letters and a merge of each pair of them. One in 16 of
// the 512 has a letter beyond ASCII, and one in 64 an escape.
func largeFile() []byte {
	syllables := make([]string, 512)
	for i := range syllables {
		last := string("aeiou"[i%5])
		switch {
		case i%64 == 63:
			last = `\u0120`
		case i%16 == 15:
			last = "é"
		}
		syllables[i] = fmt.Sprintf("%c%c%s", 'a'+i/26, 'A'+i%26, last)
	}
	var vocab, merges strings.Builder
	for i, s := range syllables {
		fmt.Fprintf(&vocab, `,"%s":%d`, s, i)
	}
	for i, left := range syllables {
		for j, right := range syllables {
			fmt.Fprintf(&vocab, `,"%s%s":%d`, left, right, 512*(i+1)+j)
			fmt.Fprintf(&merges, `,"%s %s"`, left, right)
		}
	}
	return []byte(file("model",
		`{"type":"BPE","vocab":{`+vocab.String()[1:]+`},"merges":[`+merges.String()[1:]+`]}`))
}
