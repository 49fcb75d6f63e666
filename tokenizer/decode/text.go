package decode

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/normalize"
	"github.com/ingotml/ingot/tokenizer/pattern"
	"github.com/ingotml/ingot/tokenizer/pretokenize"
)

// replaceDecoder is Replace as a decoder: it processes each token separately.
type replaceDecoder struct {
	p       pattern.Pattern
	content string
}

func newReplaceDecoder(c jsonfile.Component) (replaceDecoder, error) {
	p, err := pattern.New(c)
	if err != nil {
		return replaceDecoder{}, err
	}
	if l, ok := p.(pattern.Literal); ok && l == "" {
		return replaceDecoder{}, c.Invalid("replaces an empty string")
	}
	content, err := c.Str("content")
	return replaceDecoder{p, content}, err
}

func (replaceDecoder) fuses(fused bool) bool { return fused }

func (r replaceDecoder) start(fused bool) decoding {
	from, literal := r.p.(pattern.Literal)
	once := &replaceOnce{replaceDecoder: r}
	switch {
	case literal && fused:
		return newReplacing(string(from), r.content)
	case fused:
		return &buffered{apply: once.apply}
	}
	return mapped(once.apply)
}

// replaceOnce is a replaceDecoder for one text.
type replaceOnce struct {
	replaceDecoder
	spent time.Duration
}

// decodeTime bounds the time of a pattern in one text.
const decodeTime = 2 * time.Second

// apply returns the token unchanged if the pattern takes too long, because decoding cannot return an error.
func (r *replaceOnce) apply(s string) string {
	if r.spent >= decodeTime {
		return s
	}
	begun := time.Now()
	m := work.Start(context.Background(), work.Limits{Time: decodeTime})
	out, _, err := normalize.ReplaceAll(m, r.p, s, r.content, math.MaxInt)
	r.spent += time.Since(begun)
	if err != nil {
		return s
	}
	return out
}

// mapped transforms each token separately.
type mapped func(string) string

func (f mapped) token(s string, emit func(string)) { emit(f(s)) }
func (mapped) end(func(string))                    {}

// replacing replaces a literal in a token that arrives in parts. It holds back the end that may be the start of a
// match. Time is linear (Knuth, Morris and Pratt, https://doi.org/10.1137/0206024).
type replacing struct {
	from, to string
	shorter  []int // by length of a start of from, from 1 on: of the longest end of it that is a shorter start
	held     int   // length of the start of from that is held back
}

func newReplacing(from, to string) *replacing {
	r := &replacing{from: from, to: to, shorter: make([]int, len(from)+1)}
	for n := 2; n <= len(from); n++ {
		k := r.shorter[n-1]
		for k > 0 && from[k] != from[n-1] {
			k = r.shorter[k]
		}
		if from[k] == from[n-1] {
			k++
		}
		r.shorter[n] = k
	}
	return r
}

func (r *replacing) token(s string, emit func(string)) {
	var b strings.Builder
	for i := range len(s) {
		for r.held > 0 && r.from[r.held] != s[i] {
			next := r.shorter[r.held]
			b.WriteString(r.from[:r.held-next])
			r.held = next
		}
		if r.from[r.held] != s[i] {
			b.WriteByte(s[i])
		} else if r.held++; r.held == len(r.from) {
			b.WriteString(r.to)
			r.held = 0
		}
	}
	if b.Len() > 0 {
		emit(b.String())
	}
}

func (r *replacing) end(emit func(string)) {
	if r.held > 0 {
		emit(r.from[:r.held])
		r.held = 0
	}
}

// stripDecoder removes up to left and right characters from the ends of each token.
type stripDecoder struct {
	content     string // of one character
	left, right int
}

func newStripDecoder(c jsonfile.Component) (d stripDecoder, err error) {
	if d.content, err = c.Char("content"); err != nil {
		return d, err
	}
	const limit = 256 // what may still be stripped is copied with each token
	if _, err = c.Field("start", jsonfile.NumberNode); err != nil {
		return d, err
	}
	if _, err = c.Field("stop", jsonfile.NumberNode); err != nil {
		return d, err
	}
	if d.left, err = c.Count("start", 0, limit); err == nil {
		d.right, err = c.Count("stop", 0, limit)
	}
	return d, err
}

func (stripDecoder) fuses(fused bool) bool { return fused }

func (d stripDecoder) start(fused bool) decoding {
	if fused {
		return &stripping{stripDecoder: d}
	}
	return mapped(d.apply)
}

// apply strips a whole token. (The reference panics if the token has fewer characters than it inspects on the right.)
func (d stripDecoder) apply(s string) string {
	for n := 0; n < d.left && strings.HasPrefix(s, d.content); n++ {
		s = s[len(d.content):]
	}
	for n := 0; n < d.right && strings.HasSuffix(s, d.content); n++ {
		s = s[:len(s)-len(d.content)]
	}
	return s
}

// stripping strips a token that arrives in parts. It holds back the end that may still be stripped.
type stripping struct {
	stripDecoder
	begun bool // the left side is done
	held  string
}

func (d *stripping) token(s string, emit func(string)) {
	if !d.begun {
		s = d.held + s
		d.held = ""
		for d.left > 0 && strings.HasPrefix(s, d.content) {
			s = s[len(d.content):]
			d.left--
		}
		if d.left > 0 && strings.HasPrefix(d.content, s) { // s is empty or an incomplete character
			d.held = s
			return
		}
		d.begun = true
	}
	s = d.held + s
	keep := len(s)
	for n := 0; n < d.right && strings.HasSuffix(s[:keep], d.content); n++ {
		keep -= len(d.content)
	}
	d.held = s[keep:]
	if keep > 0 {
		emit(s[:keep])
	}
}

func (d *stripping) end(emit func(string)) {
	if s := (stripDecoder{content: d.content, right: d.right}).apply(d.held); s != "" {
		emit(s)
	}
	d.held = ""
}

// metaspaceDecoder replaces marks by spaces. In the first token it removes them if the encoder prepends one.
type metaspaceDecoder struct{ pretokenize.Metaspace }

func (metaspaceDecoder) fuses(fused bool) bool { return fused }
func (m metaspaceDecoder) start(fused bool) decoding {
	return &metaspacing{Metaspace: m.Metaspace, fused: fused, first: true}
}

type metaspacing struct {
	pretokenize.Metaspace
	fused, first bool
}

func (m *metaspacing) token(s string, emit func(string)) {
	space := " "
	if m.first && m.Prepend != pretokenize.PrependNever {
		space = ""
	}
	m.first = m.fused
	emit(strings.ReplaceAll(s, m.Mark, space))
}

func (*metaspacing) end(func(string)) {}

// wordPieceDecoder puts a space before each token that starts a word.
type wordPieceDecoder struct {
	prefix  string
	cleanup bool
}

func newWordPieceDecoder(c jsonfile.Component) (d wordPieceDecoder, err error) {
	if d.prefix, err = c.Str("prefix"); err == nil {
		d.cleanup, err = c.Flag("cleanup")
	}
	return d, err
}

func (wordPieceDecoder) fuses(fused bool) bool { return fused }
func (d wordPieceDecoder) start(fused bool) decoding {
	if fused {
		if d.cleanup {
			return &buffered{apply: cleanUp}
		}
		return passThrough{}
	}
	return &wordPieces{wordPieceDecoder: d}
}

type wordPieces struct {
	wordPieceDecoder
	any bool
}

func (d *wordPieces) token(s string, emit func(string)) {
	if d.any {
		rest, ok := strings.CutPrefix(s, d.prefix)
		if s = rest; !ok {
			s = " " + rest
		}
	}
	d.any = true
	if d.cleanup {
		s = cleanUp(s)
	}
	emit(s)
}

func (*wordPieces) end(func(string)) {}

// cleanUp removes the spaces before English punctuation and contractions (decoders/wordpiece.rs of the reference). The
// rules apply one after another.
func cleanUp(s string) string {
	for _, r := range [...][2]string{{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"},
		{" 'm", "'m"},
		{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	return s
}

// CleanUp applies clean_up_tokenization of transformers 5.23 to the whole text: the rules of cleanUp without " do
// not".
func CleanUp() Decoder {
	steps := Decoder{fuse{}}
	for _, from := range []string{" .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're"} {
		steps = append(steps, replaceDecoder{pattern.Literal(from), strings.TrimSpace(from)})
	}
	return steps
}

// bpeDecoder replaces the end-of-word suffix by a space, and removes it from the last token.
type bpeDecoder string

func (bpeDecoder) fuses(fused bool) bool { return fused }
func (d bpeDecoder) start(fused bool) decoding {
	if d == "" { // as in the reference: a space between all characters and at both ends
		if fused {
			return passThrough{}
		}
	} else if fused {
		return newReplacing(string(d), "")
	}
	return &suffixes{suffix: string(d)}
}

type suffixes struct {
	suffix, held string
	any          bool
}

func (d *suffixes) token(s string, emit func(string)) {
	if d.any {
		emit(strings.ReplaceAll(d.held, d.suffix, " "))
	}
	d.held, d.any = s, true
}

func (d *suffixes) end(emit func(string)) {
	if d.any {
		emit(strings.ReplaceAll(d.held, d.suffix, ""))
		d.any = false
	}
}

// ctcDecoder removes repeated tokens and padding (decoders/ctc.rs of the reference).
type ctcDecoder struct {
	pad, delimiter string
	cleanup        bool
}

func newCTCDecoder(c jsonfile.Component) (d ctcDecoder, err error) {
	if d.pad, err = c.Str("pad_token"); err != nil {
		return d, err
	}
	if d.delimiter, err = c.Str("word_delimiter_token"); err != nil {
		return d, err
	}
	if d.pad == "" || d.delimiter == "" {
		return d, c.Invalid("has an empty pad_token or word_delimiter_token")
	}
	d.cleanup, err = c.Flag("cleanup")
	return d, err
}

func (ctcDecoder) fuses(fused bool) bool { return fused }
func (d ctcDecoder) start(fused bool) decoding {
	if fused {
		return &buffered{apply: d.apply}
	}
	return &ctcDecoding{ctcDecoder: d}
}

func (d ctcDecoder) apply(s string) string {
	s = strings.ReplaceAll(s, d.pad, "")
	if d.cleanup {
		s = strings.ReplaceAll(cleanUp(s), d.delimiter, " ")
	}
	return s
}

type ctcDecoding struct {
	ctcDecoder
	last string
	any  bool
}

func (d *ctcDecoding) token(s string, emit func(string)) {
	if d.any && s == d.last {
		return
	}
	d.any, d.last = true, s
	if s = d.apply(s); s != "" {
		emit(s)
	}
}

func (*ctcDecoding) end(func(string)) {}
