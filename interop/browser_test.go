package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// browser is one tab of a headless Chromium that has never been used before.
type browser struct {
	t      *testing.T
	ctx    context.Context
	origin string // of the server under test

	mu       sync.Mutex
	foreign  []string // requests to anywhere else
	problems []string // errors and warnings of the console
}

// openBrowser opens the page of a server.
func openBrowser(t *testing.T, origin string) *browser {
	t.Helper()
	home := t.TempDir()
	ctx, cancel := chromedp.NewExecAllocator(t.Context(),
		chromedp.ExecPath(tool(t, "chromium")), chromedp.UserDataDir(filepath.Join(home, "profile")), chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home),
		chromedp.Flag("headless", "new"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("disable-extensions", true), chromedp.Flag("disable-default-apps", true))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, origin: origin}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	b.size(1280, 800)
	b.do(chromedp.Navigate(origin + "/"))
	return b
}

// hear keeps what a page must not do.
func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Scheme != "data" && u.Scheme != "blob" && u.Scheme != "about" && u.Scheme+"://"+u.Host != b.origin {
			b.foreign = append(b.foreign, e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.problems = append(b.problems, text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			text := fmt.Sprintf("console.%s:", e.Type)
			for _, a := range e.Args {
				text += fmt.Sprintf(" %s %s", string(a.Value), a.Description)
			}
			b.problems = append(b.problems, text)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.problems = append(b.problems, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	}
}

// clean checks that the page asked nobody but its server, and that the browser had nothing to say, but for what is expected.
func (b *browser) clean(expected ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.foreign {
		b.t.Errorf("the page asks %s", u)
	}
next:
	for _, p := range b.problems {
		for _, e := range expected {
			if strings.Contains(p, e) {
				continue next
			}
		}
		b.t.Errorf("the console says: %s", p)
	}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// eval gives the value of an expression, which may be a promise.
func eval[T any](b *browser, script string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return value
}

// until waits for an expression to be true.
func (b *browser) until(what, script string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if eval[bool](b, "Boolean("+script+")") {
			return
		}
		if time.Now().After(deadline) {
			shown := eval[string](b, "document.body.innerText")
			b.t.Fatalf("it never comes to this: %s\nthe page says:\n%s", what, shown)
		}
	}
}

// holds checks an expression.
func (b *browser) holds(what, script string) {
	b.t.Helper()
	if !eval[bool](b, "Boolean("+script+")") {
		b.t.Errorf("not so: %s", what)
	}
}

// press presses a key, with shift if it is told to.
func (b *browser) press(key string, shift ...bool) {
	b.t.Helper()
	var modifiers int64
	if len(shift) > 0 {
		modifiers = int64(kb.ModifierShift)
	}
	for _, event := range kb.Encode([]rune(key)[0]) {
		if event.Type == input.DispatchKeyEventTypeChar {
			continue // it comes with the key, so that whoever prevents one prevents the other
		}
		event.Modifiers = modifiers
		if key == kb.Enter && event.Type == input.DispatchKeyEventTypeKeyDown {
			event.Text = "\r"
		}
		if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, *event); err != nil {
			b.t.Fatal(err)
		}
	}
}

// tab goes from one element to the next with the key for that, until an expression is true of the one that has the focus, called e.
func (b *browser) tab(what, script string, back ...bool) {
	b.t.Helper()
	for range 60 {
		b.press(kb.Tab, back...)
		if eval[bool](b, "(e => Boolean("+script+"))(document.activeElement)") {
			return
		}
	}
	b.t.Fatalf("the tab key never comes to %s", what)
}

// write types what goes into the field that has the focus.
func (b *browser) write(text string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(text))
}

func (b *browser) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// media sets what the system wants.
func (b *browser) media(features ...string) {
	b.t.Helper()
	var list []*emulation.MediaFeature
	for i := 0; i < len(features); i += 2 {
		list = append(list, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: list}); err != nil {
		b.t.Fatal(err)
	}
}

// shoot makes a picture of the page, kept under INGOT_SCREENSHOTS where somebody wants to look at it.
func (b *browser) shoot(name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	dir := os.Getenv("INGOT_SCREENSHOTS")
	if dir == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// quote is a value as JavaScript has it.
func quote(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
