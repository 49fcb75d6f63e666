package tokenizer

import (
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
				if _, err := tok.Encode(text, false); err != nil {
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
		if _, err := tok.Encode(text, false); err != nil {
			b.Fatal(err)
		}
	}
}
