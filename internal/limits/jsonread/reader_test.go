package jsonread

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// skip reads one value of any kind and the end.
func skip(text string, o Options) error {
	r := New([]byte(text), o)
	if err := r.Skip(); err != nil {
		return err
	}
	return r.End()
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]Fault{
		``:                        {Offset: 0, Want: Value},
		`x`:                       {Offset: 0, Want: Value},
		"\x00":                    {Offset: 0, Want: Value},
		` {`:                      {Offset: 2, Want: Key},
		`{1:2}`:                   {Offset: 1, Want: Key},
		`{"a" 1}`:                 {Offset: 5, Want: Colon},
		`{"a":}`:                  {Offset: 5, Want: Value},
		`{"a":1 "b"`:              {Offset: 7, Want: ObjectComma},
		`{"a":1,}`:                {Offset: 7, Want: Key},
		`[1 2]`:                   {Offset: 3, Want: ArrayComma},
		`[1,]`:                    {Offset: 3, Want: Value},
		`[[`:                      {Offset: 2, Want: Value},
		`{} {}`:                   {Offset: 3, Want: End},
		"{}\x00":                  {Offset: 2, Want: End},
		`nul`:                     {Offset: 0, Want: Word, Word: "null"},
		`truE`:                    {Offset: 0, Want: Word, Word: "true"},
		`fals`:                    {Offset: 0, Want: Word, Word: "false"},
		`-`:                       {Offset: 1, Want: Value},
		`-a`:                      {Offset: 1, Want: Value},
		`1.`:                      {Offset: 2, Want: Digit},
		`1.e5`:                    {Offset: 2, Want: Digit},
		`1e+`:                     {Offset: 3, Want: Digit},
		`01`:                      {Offset: 1, Want: End},
		`.5`:                      {Offset: 0, Want: Value},
		`"a`:                      {Problem: Unterminated, Offset: 2},
		`"a\`:                     {Problem: Unterminated, Offset: 2},
		`"a\n`:                    {Problem: Unterminated, Offset: 4},
		"\"a\x1f\"":               {Problem: Control, Offset: 2},
		"\"\\n\n\"":               {Problem: Control, Offset: 3},
		"\"twelve bytes\x00\"":    {Problem: Control, Offset: 13},
		`"\q"`:                    {Problem: InvalidEscape, Offset: 1},
		`"\u12g4"`:                {Problem: InvalidEscape, Offset: 1},
		`"\u12`:                   {Problem: InvalidEscape, Offset: 1},
		`"\ud800"`:                {Problem: LoneSurrogate, Offset: 1},
		`"\udc00\ud800"`:          {Problem: LoneSurrogate, Offset: 1},
		`"\ud800\ud800"`:          {Problem: LoneSurrogate, Offset: 1},
		`"\ud800\q"`:              {Problem: LoneSurrogate, Offset: 1},
		"\"a\xff\"":               {Problem: InvalidUTF8, Offset: 2},
		"\"\\n\xc3\"":             {Problem: InvalidUTF8, Offset: 3},
		"\"\xff\\n\"":             {Problem: InvalidUTF8, Offset: 1},
		`[[[[]]]]`:                {Problem: TooDeep, Offset: 3},
		`{"a":[{"b":{"c":1}}]}`:   {Problem: TooDeep, Offset: 11},
		`[[[1],[2]],[[3]],[[[4`:   {Problem: TooDeep, Offset: 19},
		`[{},{},[[]],[[],[[4]]]]`: {Problem: TooDeep, Offset: 17},
	} {
		var got *Fault
		if err := skip(text, Options{Nesting: 3}); !errors.As(err, &got) || *got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}

// TestFail checks that the caller words the errors.
func TestFail(t *testing.T) {
	want := errors.New("mine")
	if err := skip(`{"a":`, Options{Nesting: 3, Fail: func(f Fault) error {
		if f != (Fault{Offset: 5, Want: Value}) {
			t.Errorf("fault %+v", f)
		}
		return want
	}}); err != want {
		t.Errorf("got %v", err)
	}
	err := skip(`{"a":`, Options{Nesting: 3})
	if got := err.Error(); got != "JSON byte 5: unexpected character" {
		t.Errorf("message %q", got)
	}
}

func TestFound(t *testing.T) {
	for text, want := range map[string]string{"": "the end", "a": "'a'", "\n": `'\n'`, "é": "'é'", "\xff": "'\ufffd'"} {
		if got := Found([]byte(text), 0); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestStrings(t *testing.T) {
	for text, want := range map[string]string{
		`""`:                                 "",
		`"seven b"`:                          "seven b",
		`"eight by"`:                         "eight by",
		`"sixteen bytes it"`:                 "sixteen bytes it",
		`"é𝄞 ÿ beyond ASCII é𝄞 ÿ"`:           "é𝄞 ÿ beyond ASCII é𝄞 ÿ",
		"\"a\x7f!#[]^\"":                     "a\x7f!#[]^",
		`"\"\\\/\b\f\n\r\t"`:                 "\"\\/\b\f\n\r\t",
		`"x\u00e9\u00E9\ud834\udd1e\u0000y"`: "xéé𝄞\x00y",
	} {
		r := New([]byte(" "+text+"x"), Options{})
		got, err := r.Str()
		if err != nil || string(got) != want || r.Pos != len(text)+1 {
			t.Errorf("%s: %q, %v, at %d", text, got, err, r.Pos)
		}
	}
	r := New([]byte(`"a\ud800\udc0x\udfffb\ud834\udd1e"`), Options{ReplaceSurrogates: true})
	if _, err := r.Str(); err == nil {
		t.Error("an invalid escape after a lone surrogate is accepted")
	}
	r = New([]byte(`"a\ud800\udbffb\udc00\ud834\udd1e"`), Options{ReplaceSurrogates: true})
	if got, err := r.Str(); err != nil || string(got) != "a\ufffd\ufffdb\ufffd𝄞" {
		t.Errorf("lone surrogates: %q, %v", got, err)
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "-0", "12": "12", "012": "0", "1.50": "1.50", "1.": "1", "1.x": "1", "1.5e": "1.5", "1e5": "1e5",
		"1E-05,": "1E-05", "1e+": "1", "1.e5": "1", "-": "", "": "", "+1": "", ".5": "", "x": "",
	} {
		r := New([]byte(text), Options{})
		if got := r.LongestNumber(); string(got) != want || r.Pos != len(want) {
			t.Errorf("%q: %q at %d, want %q", text, got, r.Pos, want)
		}
	}
}

// TestWalk checks that the callbacks see keys, elements and positions, and that a copy reads ahead alone.
func TestWalk(t *testing.T) {
	r := New([]byte(` { "a\n" : [ 1 , {} , [] ] , "b" : null } `), Options{Nesting: 3})
	var seen []string
	err := r.Object(func(key []byte) error {
		seen = append(seen, string(key))
		if r.Peek() != '[' {
			return r.Literal("null")
		}
		ahead := r
		if err := ahead.Skip(); err != nil {
			t.Error(err)
		}
		return r.Array(func(i int) error {
			seen = append(seen, string('0'+rune(i))+string(r.Peek()))
			return r.Skip()
		})
	})
	if got := strings.Join(seen, " "); err != nil || got != "a\n 01 1{ 2[ b" {
		t.Errorf("%q, %v", got, err)
	}
	if err := r.End(); err != nil {
		t.Error(err)
	}
	stop := errors.New("stop")
	r = New([]byte(`[[1]]`), Options{Nesting: 2})
	if err := r.Array(func(int) error { return r.Array(func(int) error { return stop }) }); err != stop {
		t.Errorf("got %v", err)
	}
}

// FuzzReader checks that Skip accepts what encoding/json does, except for what only this reader rejects, and that
// strings decode alike.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e+3,true,false,null,"\u00e9\ud83d\udca1\n"],"b":{"c":{}}}`, `"\ud800"`, "\"\xff\"", `01`, `[1,]`,
		strings.Repeat("[", 33) + strings.Repeat("]", 33), "\"long enough for two words \x1f\"", ` "x" `, `1e5 `, `-`,
	} {
		f.Add([]byte(seed))
	}
	const nesting = 32
	f.Fuzz(func(t *testing.T, text []byte) {
		var fault *Fault
		switch err := skip(string(text), Options{Nesting: nesting}); {
		case err == nil && !json.Valid(text):
			t.Fatal("accepted")
		case err == nil:
		case !errors.As(err, &fault) || fault.Offset < 0 || fault.Offset > len(text):
			t.Fatalf("error %v", err)
		case json.Valid(text) && fault.Problem != LoneSurrogate && fault.Problem != InvalidUTF8 && fault.Problem != TooDeep:
			t.Fatalf("rejected: %v", err)
		}
		r := New(text, Options{})
		if got, err := r.Str(); err == nil {
			var want string
			if err := json.Unmarshal(text[:r.Pos], &want); err != nil || want != string(got) {
				t.Fatalf("%q, want %q, %v", got, want, err)
			}
		}
	})
}
