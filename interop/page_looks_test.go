package interop

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// conversation has everything that an answer may contain.
var conversation = []map[string]any{
	{"role": "user", "text": "How do I read a safetensors header in Go, and how large may it be?"},
	{
		"role": "assistant", "model": "story:latest", "state": "done",
		"thinking": "The header is JSON, and its length comes first.\n\n- 8 bytes, little endian", "thought": 3.2,
		"text": "## Reading the header\n\nThe file begins with **8 bytes** that hold the length of the header as a " +
			"*little-endian* number; the header itself is JSON. " +
			"See [the format](https://example.com/format) and `encoding/binary`.\n\n" +
			"1. Read the length.\n2. Check it: no header is longer than 100 MB.\n   - An attacker may claim more.\n" +
			"   - Reading is bounded by what you check, not by what the file says.\n3. Decode the JSON.\n\n" +
			"```go\nvar n uint64\nif err := binary.Read(r, binary.LittleEndian, &n); err != nil {\n\treturn " +
			"fmt.Errorf(\"read the length of the header of a file with a rather long name: %w\", err)\n}\n```\n\n" +
			"> A length that is larger than the file is an error, not a reason to allocate.\n\n" +
			"| Field | Bytes | What it is |\n|---|---:|---|\n| length | 8 | of the header |\n| header | *length* | JSON, one " +
			"entry for each tensor |\n| data | the rest | tensors, back to back |\n\n- [x] bounded\n- [ ] aligned\n",
		"stats": map[string]any{"prompt_tokens": 311, "cached_tokens": 280, "prompt_seconds": 0.12, "tokens": 214,
			"seconds": 5.1, "drafted": 180, "accepted": 131, "target_steps": 84},
	},
	{"role": "user", "text": "And averyveryverylongwordthatdoesnotfitonasinglelineofanyphoneandhastobebrokensomewhere, " +
		"what of that?\n\nThanks!"},
	{"role": "assistant", "model": "story:latest", "text": "It is broken where the line ends",
		"state": "stopped", "counted": 7, "rate": 41.7},
	{"role": "user", "text": "Go on."},
	{"role": "assistant", "model": "story:latest", "text": "", "state": "failed",
		"error": "The model's process died: signal: killed"},
}

// TestPageLayout checks the page in wide and narrow windows, light and dark. INGOT_SCREENSHOTS keeps screenshots.
func TestPageLayout(t *testing.T) {
	u := newChatUser(t)
	s := u.serve()
	b := openBrowser(t, s.origin)
	b.waitFor("three models are there", `document.querySelectorAll('#model option').length === 3`)
	eval[bool](b,
		`fetch('/api/generate', {method: 'POST',
		body: '{"model": "story", "prompt": "Once", "stream": false}'}).then(r => r.ok)`)
	eval[bool](b, `(() => { localStorage.setItem('ingot.conversation', `+quote(t, quote(t, conversation))+`);
		localStorage.setItem('ingot.settings', '{"model": "story:latest"}'); return true })()`)
	for _, width := range []int64{1280, 400} {
		for _, scheme := range []string{"light", "dark"} {
			b.setSize(width, 800)
			b.setMedia("prefers-color-scheme", scheme)
			for _, view := range []string{"chat", "models", "settings"} {
				b.do(chromedp.Navigate(s.origin+"/#"+view), chromedp.Reload())
				b.waitFor("the models are there",
					`document.querySelectorAll('#model option').length === 3 &&
					document.querySelectorAll('#log > article').length === 6`)
				if view == "chat" {
					equal(t, "the facts of an answer", eval[string](b,
						`[...document.querySelectorAll('#log > .answer:nth-child(2) .facts span')].map(s => s.textContent).join('; ')`),
						"214 tokens; 42.0 tok/s; prompt 311 (280 cached) in 0.1 s; drafts: 131 of 180 accepted (73%); "+
							"2.55 tokens per step")
					b.checkLayout(fmt.Sprintf("chat-end-%d-%s", width, scheme), width)
					eval[bool](b, `(() => { document.querySelector('#scroll').scrollTop = 0; return true })()`)
				}
				if view != "settings" && (view == "models" || width > 1000) {
					b.waitFor("what goes on is shown", `document.querySelector('#live').innerText.includes('story')`)
				}
				b.checkLayout(fmt.Sprintf("%s-%d-%s", view, width, scheme), width)
				if view == "models" {
					eval[bool](b, `(() => { document.querySelector('[data-name="sight:latest"]').open = true; return true })()`)
					b.waitFor("its layers are there", `document.querySelectorAll('.layers tbody tr').length > 0`)
					eval[bool](b,
						`(() => { for (const d of document.querySelectorAll('.model .body details')) d.open = true;
						document.querySelector('[data-name="sight:latest"]').scrollIntoView(); return true })()`)
					b.checkLayout(fmt.Sprintf("layers-%d-%s", width, scheme), width)
				}
			}
			dark := eval[bool](b,
				`getComputedStyle(document.documentElement).colorScheme.includes('dark') &&
				parseInt(getComputedStyle(document.body.parentElement).backgroundColor.slice(4)) < 60`)
			if dark != (scheme == "dark") {
				t.Errorf("in the scheme %s the page is dark: %v", scheme, dark)
			}
		}
	}

	// An explicit theme overrides the system's, and persists.
	b.setMedia("prefers-color-scheme", "dark", "prefers-reduced-motion", "reduce")
	for _, want := range []string{"light", "dark", "auto", "light"} {
		eval[bool](b, `(() => { document.querySelector('#theme').click(); return true })()`)
		b.check("the theme is "+want, `(document.documentElement.dataset.theme ?? 'auto') === '`+want+`'`)
	}
	b.do(chromedp.Reload())
	b.waitFor("it is still light",
		`document.documentElement.dataset.theme === 'light' &&
		parseInt(getComputedStyle(document.documentElement).backgroundColor.slice(4)) > 200`)
	b.check("nothing moves for those who want that",
		`(() => { const d = document.createElement('p'); d.className = 'wait'; document.body.append(d);
		const name = getComputedStyle(d, '::after').animationName; d.remove(); return name === 'none' })()`)
	b.checkClean()
}

// checkLayout takes a screenshot, and checks that nothing is wider than the page and that every control has an
// accessible name.
func (b *browser) checkLayout(name string, width int64) {
	b.t.Helper()
	b.screenshot(name)
	got := eval[int64](b,
		`Math.max(document.scrollingElement.scrollWidth, document.querySelector('main').scrollWidth,
		document.querySelector('#scroll').scrollWidth)`)
	if got > width {
		b.t.Errorf("%s: the page is %d pixels wide, want %d", name, got, width)
	}
	beside := eval[[]string](b, fmt.Sprintf(`[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() &&
		!e.closest('.sr, .skip, pre, .wide, svg') && e.getBoundingClientRect().right > %d + 1)
		.map(e => e.tagName + ' ' + e.className + ' ' + e.textContent.slice(0, 40))`, width))
	if len(beside) > 0 {
		b.t.Errorf("%s: outside of the page: %q", name, beside)
	}
	nameless := eval[[]string](b, `[...document.querySelectorAll('button, input, select, textarea, a')].filter(e =>
		e.checkVisibility() &&
		!(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.[0]?.textContent.trim()))
		.map(e => e.outerHTML.slice(0, 80))`)
	if len(nameless) > 0 {
		b.t.Errorf("%s: no accessible name: %q", name, nameless)
	}
}
