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

// browser is a tab of a headless Chromium with a new profile.
type browser struct {
	t      *testing.T
	ctx    context.Context
	origin string // of the server under test

	mu              sync.Mutex
	foreignRequests []string // requests to other origins
	problems        []string // errors and warnings in the console
}

// openBrowser opens a server's page.
func openBrowser(t *testing.T, origin string) *browser {
	t.Helper()
	home := t.TempDir()
	ctx, cancel := chromedp.NewExecAllocator(t.Context(),
		chromedp.ExecPath(tool(t, "chromium")), chromedp.UserDataDir(filepath.Join(home, "profile")),
		chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home),
		chromedp.Flag("headless", "new"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true),
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
	if err := chromedp.Listen(ctx, b.record); err != nil {
		t.Fatal(err)
	}
	b.setSize(1280, 800)
	b.do(chromedp.Navigate(origin + "/"))
	return b
}

// record collects requests to other origins, exceptions, and console errors.
func (b *browser) record(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Scheme != "data" && u.Scheme != "blob" && u.Scheme != "about" &&
			u.Scheme+"://"+u.Host != b.origin {
			b.foreignRequests = append(b.foreignRequests, e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.problems = append(b.problems, text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning ||
			e.Type == runtime.ConsoleAPICalledTypeAssert {
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

// checkClean fails the test if the page made requests to other origins, or if the console has unexpected errors or
// warnings.
func (b *browser) checkClean(expected ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.foreignRequests {
		b.t.Errorf("request to another origin: %s", u)
	}
next:
	for _, p := range b.problems {
		for _, e := range expected {
			if strings.Contains(p, e) {
				continue next
			}
		}
		b.t.Errorf("console: %s", p)
	}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns the value of an expression, which may be a promise.
func eval[T any](b *browser, script string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return value
}

// waitFor waits until an expression is true.
func (b *browser) waitFor(what, script string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if eval[bool](b, "Boolean("+script+")") {
			return
		}
		if time.Now().After(deadline) {
			shown := eval[string](b, "document.body.innerText")
			b.t.Fatalf("timeout: %s\nthe page's text:\n%s", what, shown)
		}
	}
}

// check fails the test unless an expression is true.
func (b *browser) check(what, script string) {
	b.t.Helper()
	if !eval[bool](b, "Boolean("+script+")") {
		b.t.Errorf("not true: %s", what)
	}
}

// press presses a key, optionally with shift.
func (b *browser) press(key string, shift ...bool) {
	b.t.Helper()
	var modifiers int64
	if len(shift) > 0 {
		modifiers = int64(kb.ModifierShift)
	}
	for _, event := range kb.Encode([]rune(key)[0]) {
		if event.Type == input.DispatchKeyEventTypeChar {
			continue // the key event includes it, so that preventing one prevents the other
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

// tab presses the tab key until an expression is true of the focused element, which it calls e.
func (b *browser) tab(what, script string, back ...bool) {
	b.t.Helper()
	for range 60 {
		b.press(kb.Tab, back...)
		if eval[bool](b, "(e => Boolean("+script+"))(document.activeElement)") {
			return
		}
	}
	b.t.Fatalf("the tab key never reaches %s", what)
}

// typeText types a text into the focused field.
func (b *browser) typeText(text string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(text))
}

func (b *browser) setSize(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// setMedia sets media features, such as the preferred color scheme.
func (b *browser) setMedia(features ...string) {
	b.t.Helper()
	var list []*emulation.MediaFeature
	for i := 0; i < len(features); i += 2 {
		list = append(list, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: list}); err != nil {
		b.t.Fatal(err)
	}
}

// screenshot captures the page. It writes a PNG file if INGOT_SCREENSHOTS is set.
func (b *browser) screenshot(name string) {
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

// quote returns a value as a JavaScript literal.
func quote(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
