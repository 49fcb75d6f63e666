package interop

import (
	"strings"
	"testing"
)

// TestPageMarkdown checks how the page renders Markdown, in a browser.
func TestPageMarkdown(t *testing.T) {
	u := newUser(t)
	b := openBrowser(t, u.serve().origin)
	shows := func(text string) string {
		t.Helper()
		return eval[string](b, `import('/page/prose.js').then(m => { const d = document.createElement('div');
			m.show(d, `+quote(t, text)+`); return d.innerHTML })`)
	}
	const out = ` target="_blank" rel="noopener noreferrer nofollow" referrerpolicy="no-referrer" title=`
	link := func(address, text string) string {
		return `<a href="` + address + `"` + out + `"` + address + `">` + text + `</a>`
	}
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"One\ntwo\n\nthree", "<p>One<br>two</p><p>three</p>"},
		{"<b>x</b> & <script>alert(1)</script>", "<p>&lt;b&gt;x&lt;/b&gt; &amp; &lt;script&gt;alert(1)&lt;/script&gt;</p>"},
		{"a<br>b<br/>c", "<p>a<br>b<br>c</p>"},

		{"*a* _b_ **c** __d__ ~~e~~ ***f***",
			"<p><em>a</em> <em>b</em> <strong>c</strong> <strong>d</strong> <del>e</del> <em><strong>f</strong></em></p>"},
		{"**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"},
		{"snake_case_name, 2 * 3 * 4, a * b", "<p>snake_case_name, 2 * 3 * 4, a * b</p>"},
		{"**open, *and* \\*no\\*", "<p>**open, <em>and</em> *no*</p>"},
		{"*foo**bar**baz*", "<p><em>foo<strong>bar</strong>baz</em></p>"},
		{"`a*b*` ``c`d`` `e", "<p><code>a*b*</code> <code>c`d</code> `e</p>"},
		{"\\`a`b`", "<p>`a<code>b</code></p>"},

		{"[x](https://a.example/b_c_d)", "<p>" + link("https://a.example/b_c_d", "x") + "</p>"},
		{"[**x** y](<https://a.example/> \"t\")", "<p>" + link("https://a.example/", "<strong>x</strong> y") + "</p>"},
		{"see https://a.example/x(1). <https://b.example/>",
			"<p>see " + link("https://a.example/x(1)", "https://a.example/x(1)") + ". " +
				link("https://b.example/", "https://b.example/") + "</p>"},
		{"(https://a.example/x)", "<p>(" + link("https://a.example/x", "https://a.example/x") + ")</p>"},
		{"[a](javascript:alert(1)) [b](/api/tags) [c](data:text/html,x) [d]( JavaScript:x )",
			`<p><span class="inert">a</span> <span class="inert">b</span> ` +
				`<span class="inert">c</span> <span class="inert">d</span></p>`},
		{"![cat](https://a.example/cat.png)", "<p>" + link("https://a.example/cat.png", "[picture: cat]") + "</p>"},
		{"[https://a.example](https://b.example/)",
			"<p>" + link("https://b.example/", `<span class="inert">https://a.example</span>`) + "</p>"},
		{"[a] [b](c d) x[1](2", "<p>[a] [b](c d) x[1](2</p>"},
		{"https://a.example/<script>", "<p>" + link("https://a.example/", "https://a.example/") + "&lt;script&gt;</p>"},

		{"# A\n## B #\n###### C\n#D", `<h3 class="h1">A</h3><h4 class="h2">B</h4><h6 class="h6">C</h6><p>#D</p>`},
		{"a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"},
		{"> a\n> > b\n\nc", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p>"},
		{"- a\n- b\n  - c\n    - d\n- e", "<ul><li>a</li><li>b<ul><li>c<ul><li>d</li></ul></li></ul></li><li>e</li></ul>"},
		{"1. a\n  - b\n    - c\n2. d", "<ol><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li><li>d</li></ol>"},
		{"3) a\n4) b", `<ol start="3"><li>a</li><li>b</li></ol>`},
		{"* a\n\n* b\n\n  more", "<ul><li><p>a</p></li><li><p>b</p><p>more</p></li></ul>"},
		{"- a\nlazy\n\nnot", "<ul><li>a<br>lazy</li></ul><p>not</p>"},
		{"Text:\n- a\n1. b", "<p>Text:</p><ul><li>a</li></ul><ol><li>b</li></ol>"},
		{"It was\n1986. A year", "<p>It was<br>1986. A year</p>"},
		{"- [x] a\n- [ ] b",
			`<ul><li class="task"><span class="tick" role="img" aria-label="done">☑</span> a</li>` +
				`<li class="task"><span class="tick" role="img" aria-label="to do">☐</span> b</li></ul>`},
		{"a | b\n--|:-:\n`x` \\| y | **z** | w\n1",
			`<div class="wide" tabindex="0"><table><thead><tr><th scope="col">a</th>` +
				`<th class="center" scope="col">b</th></tr></thead>` +
				`<tbody><tr><td><code>x</code> | y</td><td class="center"><strong>z</strong></td></tr></tbody></table></div>` +
				`<p>1</p>`},
		{"a | b\nc", "<p>a | b<br>c</p>"},
	} {
		if got := shows(c.text); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
	for text, want := range map[string]string{
		"```go\na := `x`\n\n  b <c>\n```\nafter": "go|a := `x`\n\n  b <c>",
		"~~~\n```\n~~~":                          "text|```",
		"```python\nnot yet closed":              "python|not yet closed",
		"- a\n\n  ```\n  code\n    more\n  ```":  "text|code\n  more",
		"````\n```\n````":                        "text|```",
	} {
		got := eval[string](b, `import('/page/prose.js').then(m => { const d = document.createElement('div');
			m.show(d, `+quote(t, text)+`);
			return d.querySelector('figcaption span').textContent + '|' + d.querySelector('code').textContent })`)
		if got != want {
			t.Errorf("%q: the code is %q, want %q", text, got, want)
		}
	}

	// A growing text renders like the whole, and blocks that are complete are not rendered again.
	whole := "# A\n\nSome *text*.\n\n- a\n- b\n\n```\ncode\n```\n\n| a |\n|---|\n| b |\n"
	grown := eval[string](b, `import('/page/prose.js').then(m => { const d = document.createElement('div');
		const text = `+quote(t, whole)+`; let first;
		for (let i = 1; i <= text.length; i++) { m.show(d, text.slice(0, i)); if (i === 5) first = d.firstChild }
		return first === d.firstChild ? d.innerHTML : 'the first block was drawn again' })`)
	if want := shows(whole); grown != want {
		t.Errorf("grown:\n got %s\nwant %s", grown, want)
	}

	// No text of a model may hang the page. Each of these overflows the stack or takes forever if the time is not linear
	// in the length.
	for _, part := range []string{
		"*a ", "**a", "a**", "_a_*", "[", "[a](", "](x)", "![", "[](", "`", "``a`", "> ", "- ", "  - a\n",
		"|", "a|b\n-|-\n", "<", "http://a", "# ", "#", "~~a", "1. ", "\\", "***",
		"a*_~", "[a](b \"", "\n\n", "```\n", "((", "   "} {
		n := 60000 / len(part)
		text := strings.Repeat(part, n)
		got := eval[bool](b, `import('/page/prose.js').then(m => { const d = document.createElement('div');
			m.show(d, `+quote(t, text)+`); m.show(d, `+quote(t, text+"x")+`); return true })`)
		if !got {
			t.Errorf("%q", part)
		}
	}
	b.checkClean()
}
