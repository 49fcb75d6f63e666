package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestPage(t *testing.T) {
	u := newChatUser(t)
	s := u.serve()
	b := openBrowser(t, s.origin)
	b.waitFor("three models are there", `document.querySelectorAll('#model option').length === 3`)
	b.waitFor("the message has the focus",
		`document.activeElement.id === 'message' && !document.querySelector('#model').disabled`)
	b.screenshot("empty")

	t.Run("chat", func(t *testing.T) {
		b.t = t
		b.chooseModel("story")
		// Record what is shown while the answer streams.
		eval[bool](b, `(() => { window.seen = new Set(); new MutationObserver(() => { const a = `+last+`;
			if (a?.getAttribute('aria-busy') === 'true') seen.add(a.querySelector('.prose:not(.thinking .prose)').innerText) })
			.observe(document.querySelector('#log'), {subtree: true, childList: true, characterData: true, attributes: true});
			return true })()`)
		b.typeText("Once upon")
		b.press(kb.Enter, true)
		b.typeText("a time")
		b.check("Shift+Enter starts a line", `document.querySelector('#message').value === 'Once upon\na time'`)
		b.ask("")
		b.check("the answer came in pieces", `[...seen].filter(s => s.trim()).length >= 2`)
		b.check("there is an answer", last+`.querySelector('.prose:not(.thinking .prose)').innerText.length > 20`)
		facts := eval[string](b, last+`.querySelector('.facts').innerText`)
		for _, want := range []string{" tokens", " tok/s", "prompt "} {
			if !strings.Contains(facts, want) {
				t.Errorf("the statistics of the answer are %q, without %q", facts, want)
			}
		}
		b.check("the message box is empty and has the focus",
			`document.activeElement.id === 'message' && document.activeElement.value === ''`)
		b.waitFor("a screen reader is told", `document.querySelector('#said').textContent.length > 20`)
		b.waitFor("the model is among those in memory", `document.querySelector('#live').innerText.includes('story')`)
		ranks := eval[string](b, `import('/page/format.js').then(m => m.ranks({
			ranks: [{host: 'a', weights: 1.2e9}, {host: 'b', weights: 1.1e9}], ring: {sent: 12e3, received: 23e6}}))`)
		if ranks != "2 ranks: a 1.2 GB, b 1.1 GB; sent 12 kB; received 23 MB" {
			t.Errorf("a divided model is shown as %q", ranks)
		}
	})

	t.Run("again", func(t *testing.T) {
		b.t = t
		b.tab("the button", `e.getAttribute('aria-label') === 'Regenerate'`, true)
		b.press(kb.Enter)
		b.waitFor("there is another answer", isDone)
		b.check("there is one answer", `document.querySelectorAll('#log > article').length === 2`)
		b.check("the message has the focus", `document.activeElement.id === 'message'`)
	})

	t.Run("stop", func(t *testing.T) {
		b.t = t
		// A model this small finishes before anybody can stop it. So its process is stopped, and continued for a moment at a
		// time until the answer begins.
		pid, _ := s.ps("story")
		signal := func(what syscall.Signal) {
			if err := syscall.Kill(pid, what); err != nil {
				t.Fatal(err)
			}
		}
		signal(syscall.SIGSTOP)
		defer signal(syscall.SIGCONT)
		b.typeText("The fox")
		b.press(kb.Enter)
		b.waitFor("the answer is waited for", `!document.querySelector('#stop').hidden`)
		begun := last + `.querySelector('.prose:not(.thinking .prose)').innerText.trim() !== ''`
		for deadline := time.Now().Add(time.Minute); !eval[bool](b, begun); time.Sleep(20 * time.Millisecond) {
			signal(syscall.SIGCONT)
			time.Sleep(2 * time.Millisecond)
			signal(syscall.SIGSTOP)
			if time.Now().After(deadline) {
				t.Fatal("the answer does not begin")
			}
		}
		b.check("the answer has not ended", last+`.getAttribute('aria-busy') === 'true'`)
		b.press(kb.Escape)
		b.waitFor("it is stopped", isDone+` && `+last+`.querySelector('.facts').innerText.startsWith('stopped')`)
		b.check("what was said stays", last+`.querySelector('.prose:not(.thinking .prose)').innerText.trim() !== ''`)
		b.check("a message can be sent", `!document.querySelector('#send').hidden && document.activeElement.id === 'message'`)
		signal(syscall.SIGCONT)
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if _, requests := s.ps("story"); requests == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the server continues a request that was stopped")
			}
		}
	})

	t.Run("switch", func(t *testing.T) {
		b.t = t
		b.chooseModel("muse")
		b.ask("Tell")
		b.check("the other model answered", last+`.querySelector('.who').innerText === 'muse'`)
		s.ps("muse")
	})

	t.Run("thinking", func(t *testing.T) {
		b.t = t
		thoughts := last + `.querySelector('.thinking .prose')`
		b.check("thinking is folded",
			`!`+last+`.querySelector('.thinking').open && !`+thoughts+`.checkVisibility({contentVisibilityAuto: true})`)
		b.check("it says for how long", last+`.querySelector('.thinking summary').innerText.startsWith('Thought for ')`)
		b.tab("the summary", `e === `+last+`.querySelector('.thinking summary')`, true)
		b.press(kb.Enter)
		b.waitFor("thinking is shown", last+`.querySelector('.thinking').open && `+thoughts+`.innerText.length > 10`)
		b.screenshot("thinking")
		b.tab("the message", `e.id === 'message'`)
	})

	t.Run("pictures", func(t *testing.T) {
		b.t = t
		dropped := `(() => { const data = new DataTransfer();
			data.items.add(new File([Uint8Array.from(atob('` + onePixel + `'), c => c.charCodeAt(0))], 'dot.png',
			{type: 'image/png'}));
			document.querySelector('#message').dispatchEvent(new %s); return true })()`
		paste := fmt.Sprintf(dropped, `ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true})`)
		drop := fmt.Sprintf(dropped, `DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})`)
		eval[bool](b, paste)
		b.waitFor("a model that sees nothing takes no picture",
			`document.querySelector('#notice').innerText.includes('does not support pictures')`)
		b.check("nothing is attached",
			`document.querySelectorAll('#pictures li').length === 0 && document.querySelector('#attach').hidden`)
		b.tab("the button", `e.id === 'clear'`, true) // the model's context is short
		b.press(kb.Enter)
		b.check("the message has the focus", `document.activeElement.id === 'message'`)
		b.chooseModel("sight")
		eval[bool](b, paste)
		b.waitFor("what is pasted is attached", `document.querySelectorAll('#pictures img').length === 1`)
		eval[bool](b, drop)
		b.waitFor("what is dropped is attached", `document.querySelectorAll('#pictures img').length === 2`)
		b.do(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{checkpoint(t, "../pictures/shapes.png")}))
		b.waitFor("a file is attached", `document.querySelectorAll('#pictures img').length === 3`)
		for range 2 {
			b.tab("a button that removes", `e.getAttribute('aria-label') === 'Remove picture 1'`, true)
			b.press(kb.Enter)
		}
		b.waitFor("they are removed", `document.querySelectorAll('#pictures img').length === 1`)
		b.waitFor("all pictures can be shown",
			`[...document.querySelectorAll('#pictures img')].every(i => i.complete && i.naturalWidth > 1)`)
		b.tab("the message", `e.id === 'message'`)
		b.screenshot("attached")
		b.ask("what is it")
		b.check("the answer is no error", last+`.querySelector('.error').hidden`)
		b.check("the picture is shown", `document.querySelector('#log > .user:nth-last-child(2) img').naturalWidth > 1`)
	})

	t.Run("reload, clear and undo", func(t *testing.T) {
		b.t = t
		count := eval[int](b, `document.querySelectorAll('#log > article').length`)
		b.do(chromedp.Reload())
		b.waitFor("the conversation is there again",
			fmt.Sprintf(`document.querySelectorAll('#log > article').length === %d &&
				document.querySelector('#model').value === 'sight:latest'`, count))
		kept := eval[string](b, `import('/page/chats.js').then(m => m.exported())`)
		var exported struct {
			Messages []struct{ Role, Text, State string }
		}
		if err := json.Unmarshal([]byte(kept), &exported); err != nil || len(exported.Messages) != count ||
			exported.Messages[0].Text != "what is it" {
			t.Errorf("exported: %v: %.200s", err, kept)
		}
		b.waitFor("the message has the focus", `document.activeElement.id === 'message'`)
		downloads := t.TempDir()
		if _, err := chromedp.CallBrowser(b.ctx, cdpbrowser.SetDownloadBehavior,
			cdpbrowser.SetDownloadBehaviorParams{Behavior: "allow", DownloadPath: downloads}); err != nil {
			t.Fatal(err)
		}
		b.tab("the button", `e.id === 'export'`, true)
		b.press(kb.Enter)
		saved := filepath.Join(downloads, "ingot-chat-"+time.Now().UTC().Format(time.DateOnly)+".json")
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if content, err := os.ReadFile(saved); err == nil && json.Valid(content) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s does not exist", saved)
			}
		}
		b.tab("the button", `e.id === 'clear'`)
		b.press(kb.Enter)
		b.waitFor("the conversation is gone",
			`document.querySelectorAll('#log > article').length === 0 && !document.querySelector('#empty').hidden &&
			localStorage.getItem('ingot.conversation') === '[]'`)
		b.tab("the button", `e.innerText === 'Undo'`)
		b.press(kb.Enter)
		b.waitFor("it is there again", fmt.Sprintf(`document.querySelectorAll('#log > article').length === %d`, count))
	})

	t.Run("models", func(t *testing.T) {
		b.t = t
		b.do(chromedp.Focus(chromedp.CSS(".brand")))
		b.tab("the view", `e.hash === '#models'`)
		b.press(kb.Enter)
		b.waitFor("the models are shown, the conversation is not",
			`document.querySelector('#models').offsetParent !== null && document.querySelector('#chat').offsetParent === null`)
		b.check("the models are listed", `document.querySelectorAll('#models details.model').length === 3`)
		b.tab("a model", `e.parentElement?.dataset.name === 'story:latest'`)
		b.press(kb.Enter)
		row := `document.querySelector('[data-name="story:latest"]')`
		b.waitFor("its layers are listed", row+`.querySelectorAll('.layers tbody tr').length > 0`)
		var layers []struct{ Name, Digest string }
		if err := json.Unmarshal([]byte(u.ingot("show", "story", "--layers", "--json")), &layers); err != nil {
			t.Fatal(err)
		}
		listed := eval[[]string](b,
			`[...`+row+`.querySelectorAll('.layers tbody tr')]
			.map(r => r.cells[0].textContent + ' ' + r.querySelector('code').title)`)
		if len(listed) != len(layers) || len(layers) == 0 {
			t.Fatalf("%d layers are listed, want %d", len(listed), len(layers))
		}
		for i, l := range layers {
			equal(t, "layer", listed[i], l.Name+" "+l.Digest)
		}
		b.check("its size is there", row+`.querySelector('.size').innerText.endsWith('MB')`)
		b.waitFor("it is loaded", row+`.querySelector('.badge').innerText === 'loaded'`)
		b.tab("the button", `e.innerText === 'Unload'`)
		b.press(kb.Enter)
		b.waitFor("it is unloaded", row+`.querySelector('.badge').hidden`)
		b.tab("the button", `e.innerText === 'Chat with it'`, true)
		b.press(kb.Enter)
		b.waitFor("it is the one to talk to",
			fmt.Sprintf(ofModel, "story", "story")+` && document.activeElement.id === 'message'`)
	})
	t.Run("storage", func(t *testing.T) {
		b.t = t
		kept := eval[string](b,
			`import('/page/chats.js').then(m => { m.chat.messages = [{role: 'user', text: 'see',
			images: ['data:image/png;base64,' + 'A'.repeat(6000000)]}];
			return m.saveChat() + localStorage.getItem('ingot.conversation') })`)
		equal(t, "what is kept of pictures that have no room", kept, `false[{"role":"user","text":"see","lost":1}]`)
		b.do(chromedp.Reload())
		b.waitFor("that is said", `document.querySelector('#log > .user').innerText.includes('1 picture did not fit')`)
		eval[bool](b,
			`(() => { localStorage.setItem('ingot.conversation', '{"a":1}'); localStorage.setItem('ingot.settings', '[7');
			return true })()`)
		b.do(chromedp.Reload())
		b.waitFor("what cannot be read is nothing",
			`document.querySelectorAll('#model option').length === 3 && !document.querySelector('#empty').hidden`)
	})
	b.t = t
	b.checkClean()
}

// onePixel is a PNG image of one pixel.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// TestPageWithKey: the page asks for the key once, and forgets it when the tab is closed.
func TestPageWithKey(t *testing.T) {
	u := newUser(t)
	u.create("story", "demo")
	s := u.serve("--api-key", "secret")
	b := openBrowser(t, s.origin)
	b.waitFor("it asks for the key", `document.querySelector('#key').open`)
	b.screenshot("key")
	b.typeText("wrong")
	b.press(kb.Enter)
	b.waitFor("a wrong one is not taken",
		`document.querySelector('#key').open && document.querySelector('#key-why').innerText.includes('rejected')`)
	b.typeText("secret")
	b.press(kb.Enter)
	b.waitFor("the models are there",
		`document.querySelectorAll('#model option').length === 1 && !document.querySelector('#key').open`)
	b.check("the key goes with the tab",
		`sessionStorage.getItem('ingot.key') === 'secret' && !Object.values(localStorage).some(v => v.includes('secret')) &&
		!document.cookie`)
	b.do(chromedp.Reload())
	b.waitFor("it is not asked for again",
		`document.querySelectorAll('#model option').length === 1 && !document.querySelector('#key').open`)
	b.waitFor("the message has the focus", `document.activeElement.id === 'message'`)
	b.ask("Once")
	b.check("the model answers", last+`.querySelector('.error').hidden`)
	b.checkClean("401")
}
