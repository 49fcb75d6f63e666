package ecma

import "testing"

func TestSearch(t *testing.T) {
	for _, c := range []struct {
		pattern  string
		yes, not []string
	}{
		{`^[a-z]+$`, []string{"a", "abc"}, []string{"", "A", "a1", "a\n"}},
		{`b`, []string{"b", "abc"}, []string{"", "ac"}},
		{`^a|b$`, []string{"ax", "xb"}, []string{"xa", "bx"}},
		{`^(?!foo)\w+$`, []string{"fo", "barfoo"}, []string{"foo", "foobar"}},
		{`^(?=.*\d)(?=.*[a-z]).{3,5}$`, []string{"a1x", "xx1xx"}, []string{"abc", "123", "a1"}},
		{`^(?:a(?!b)|c)`, []string{"ac", "cb"}, []string{"ab"}},
		{`\bcat\b`, []string{"cat", "a cat!"}, []string{"cats", "scat"}},
		{`^\S+$`, []string{"é"}, []string{"a b", "a\u00a0b", "a\ufeffb", "a\vb"}},
		{`^\w$`, []string{"_"}, []string{"é"}},
		{`^\p{L}{2}$`, []string{"éß"}, []string{"1a"}},
		{`^\p{Extended_Pictographic}\p{Emoji_Modifier}?$`, []string{"😀", "👍🏽", "©"}, []string{"1", "🏽", "a"}},
		{`^(?=[\s\S]*[\p{Regional_Indicator}\u20E3])[\p{Emoji_Component}]+$`, []string{"🇪🇺", "1\u20e3"}, []string{"1", "#"}},
		{`^\uD83D\uDE00$`, []string{"😀"}, []string{"x"}},
		{`^a{2,3}{`, []string{"aa{"}, []string{"aaa"}},
		{`^(?i)ab$`, []string{"aB"}, []string{"abc"}},
		{`a^b`, nil, []string{"ab", "a^b"}},
		{`^.*$`, []string{"", "abc"}, []string{"a\nb"}},
		{`^[\w.-]+@[\w-]+\.com$`, []string{"a.b@c.com"}, []string{"@c.com"}},
	} {
		d, err := Search(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		for _, s := range c.yes {
			if !d.Match(s) {
				t.Errorf("%s does not match %q", c.pattern, s)
			}
		}
		for _, s := range c.not {
			if d.Match(s) {
				t.Errorf("%s matches %q", c.pattern, s)
			}
		}
	}
}
