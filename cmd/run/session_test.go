package run

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
)

// echo is a backend that responds with the user's message.
type echo struct {
	requests []modelRequest
	opened   []string
	stop     func() // called in the middle of a response
	fails    error  // returned in the middle of a response
}

func (v *echo) close() { v.opened = append(v.opened, "closed") }

func (v *echo) idsOnly() bool { return false }

func (v *echo) generate(ctx context.Context, q modelRequest) iter.Seq2[responsePart, error] {
	v.requests = append(v.requests, q)
	last := q.turns[len(q.turns)-1].Content
	return func(yield func(responsePart, error) bool) {
		events := []parse.Event{{Kind: parse.Thinking, Text: "hm"}, {Kind: parse.Content, Text: "You said "}}
		if !yield(responsePart{events: events}, nil) {
			return
		}
		if v.stop != nil {
			v.stop()
			<-ctx.Done()
			yield(responsePart{}, ctx.Err())
			return
		}
		if v.fails != nil {
			yield(responsePart{}, v.fails)
			return
		}
		yield(responsePart{
			events: []parse.Event{{Kind: parse.Content, Text: last}},
			done:   "stop",
			stats:  server.Stats{PromptTokens: 9, CachedTokens: 4, PromptSeconds: 1, Tokens: 2, Seconds: 1},
		}, nil)
	}
}

// scripted is a session whose user enters given lines and leaves.
type scripted struct {
	*session
	*echo
	screen *bytes.Buffer
	errs   *bytes.Buffer
	ctx    context.Context // ends when a signal ends the program
}

// interrupt sends Ctrl-C to the program.
func interrupt(t *testing.T) {
	t.Helper()
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(os.Interrupt)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// converse runs a session with a model that has a system prompt and messages.
func converse(t *testing.T, setup func(*scripted), lines ...string) *scripted {
	t.Helper()
	t.Setenv("INGOT_HOME", filepath.Join(t.TempDir(), "store"))
	demo, err := filepath.Abs(filepath.Join("..", "..", "testdata", "models", "demo"))
	if err != nil {
		t.Fatal(err)
	}
	text := "FROM " + demo +
		"\nSYSTEM brief\nMESSAGE user a\nMESSAGE assistant b\nPARAMETER top_k 7\n" +
		"TEMPLATE \"{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking %} {% endif %}\"\n"
	var errs bytes.Buffer
	s := &scripted{echo: &echo{}, screen: &bytes.Buffer{}, errs: &errs}
	st, err := store.Open("")
	if err != nil {
		t.Fatal(err)
	}
	name, err := manifest.ParseName("talk")
	if err != nil {
		t.Fatal(err)
	}
	from, err := modelfile.Parse("Modelfile", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := convert.Create(t.Context(), st, name, from, convert.Options{}); err != nil {
		t.Fatal(err)
	}
	app := &cli.App{Out: terminal.Data(s.screen), Err: terminal.Notes(s.errs)}
	var stop func()
	s.ctx, stop = app.Signals()
	t.Cleanup(stop)
	s.session = &session{App: app, store: st, history: &terminal.History{}}
	s.read = func(_ context.Context, prompt string) (string, error) {
		s.screen.WriteString(prompt)
		if len(lines) == 0 {
			return "", io.EOF
		}
		line := lines[0]
		lines = lines[1:]
		s.screen.WriteString(line + "\n")
		if line == "^C" {
			return "", terminal.ErrInterrupted
		}
		return line, nil
	}
	s.open = func(_ context.Context, entry *store.Entry, _ *prompt.Style) (backend, error) {
		s.opened = append(s.opened, entry.Name.String())
		return s.echo, nil
	}
	if setup != nil {
		setup(s)
	}
	if err := s.load(context.Background(), "talk"); err != nil {
		t.Fatal(err)
	}
	s.screen.Reset()
	if err := s.run(s.ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// turns returns the roles and texts of messages.
func turns(list []chat.Message) (out []string) {
	for _, m := range list {
		out = append(out, m.Role+": "+m.Content)
	}
	return out
}

func (s *scripted) checkRequest(t *testing.T, i int, want ...string) {
	t.Helper()
	if i >= len(s.requests) {
		t.Fatalf("%d requests", len(s.requests))
	}
	if diff := cmp.Diff(want, turns(s.requests[i].turns)); diff != "" {
		t.Errorf("request %d (- want, + got):\n%s", i, diff)
	}
}

func (s *scripted) checkScreen(t *testing.T, want ...string) {
	t.Helper()
	rest := s.screen.String()
	for _, w := range want {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Errorf("%q is missing or out of order on the screen:\n%s", w, s.screen)
			return
		}
		rest = after
	}
}

func TestSession(t *testing.T) {
	s := converse(t, nil, "hello", "", `"""one`, `two`, `"""`, ` """quoted""" here`, "^C", "/set verbose", "last")
	s.checkRequest(t, 0, "user: hello")
	s.checkRequest(t, 1, "user: hello", "assistant: You said hello", "user: one\ntwo")
	s.checkRequest(t, 2, "user: hello", "assistant: You said hello", "user: one\ntwo", "assistant: You said one\ntwo",
		"user: quoted here")
	s.checkScreen(t, ">>> hello\nYou said hello\n\n>>> \n>>> \"\"\"one\n... two\n... \"\"\"\nYou said one\ntwo\n\n",
		">>> ^C\nPress Ctrl-D or type /bye to leave.\n>>> ")
	if q := s.requests[0]; q.system != "brief" || q.think != "" || q.turns[0].Parts != nil {
		t.Errorf("request %+v", q)
	}
	if got := s.requests[1].turns[1].Reasoning; got != "hm" {
		t.Errorf("the thinking is %q", got)
	}
	const stats = "\nprompt: 9 tokens, 4 of them cached, in 1.00 s (5.0 tokens/s); " +
		"generated: 2 tokens in 1.00 s (2.0 tokens/s)\n"
	if got := s.errs.String(); got != stats {
		t.Errorf("standard error: %q", got)
	}
}

func TestSessionSettings(t *testing.T) {
	s := converse(t, nil,
		"/set parameter temperature 0.5", "/set parameter stop X \"two words\"", "/set parameter top_k 9",
		"/set system \"\"\"be", "very brief\"\"\"", "/set think high", "/set nohistory", "/set format regex:a+",
		"hello", "/show parameters", "/show system", "/set system", "/clear", "/set nothink", "/set noformat", "again",
		"/show info", "/show modelfile", "/show template")
	q := s.requests[0]
	if q.system != "be\nvery brief" || q.think != "high" ||
		q.format != (runtime.Format{Kind: runtime.FormatRegex, Source: "a+"}) {
		t.Errorf("system %q, think %q, format %v", q.system, q.think, q.format)
	}
	if got, want := settings.ParameterText(q.parameters),
		"stop \"X\"\nstop \"two words\"\ntemperature 0.5\ntop_k 9\n"; got != want {
		t.Errorf("parameters %q, want %q", got, want)
	}
	s.checkScreen(t, "/show parameters\nstop \"X\"\nstop \"two words\"\ntemperature 0.5\ntop_k 9\ntop_p 0.9\n"+
		"repeat_last_n 64 (default)\nrepeat_penalty 1 (default)\n",
		"/show system\nbe\nvery brief\n", "architecture", "SYSTEM brief", "{% for m in messages %}")
	if q := s.requests[1]; q.system != "" || q.think != "off" || q.format.Kind != "" {
		t.Errorf("system %q, think %q, format %v", q.system, q.think, q.format)
	}
	s.checkRequest(t, 1, "user: again")
}

// A model that cannot be told to think refuses it at once, not at each message.
func TestSessionThink(t *testing.T) {
	for want, change := range map[string]func(*prompt.Style){
		"its chat template has no control for it": func(s *prompt.Style) {
			s.Templates, s.Texts.Parser = chat.One("{{ messages }}"), ""
		},
		"has no chat template, which thinking": func(s *prompt.Style) { s.Templates = nil },
	} {
		s := converse(t, func(s *scripted) {
			open := s.open
			s.open = func(ctx context.Context, e *store.Entry, style *prompt.Style) (backend, error) {
				change(style)
				e.Image.Config.Capabilities = []string{manifest.CapCompletion}
				return open(ctx, e, style)
			}
		}, "/set think", "hello", "/set nothink")
		if q := s.requests[0]; q.think != "" || !strings.Contains(s.errs.String(), want) {
			t.Errorf("think %q, standard error: %q", q.think, s.errs)
		}
	}
}

func TestSessionMistakes(t *testing.T) {
	s := converse(t, nil, "/frobnicate", "/set frobnicate", "/set", "/show", "/set parameter frob 1",
		"/set parameter top_p 7", "/set parameter top_p", "/set think hard", "/clear now",
		"/load nosuch", "/load", "/save a b", "/save 'bad", "/?", "/home/me/notes.txt says", "/bye", "never")
	want := []string{
		`unknown command "/frobnicate"; /? lists the commands`, `unknown command "/set frobnicate"; /set lists`,
		`unknown parameter "frob"`, "top_p must be between 0 and 1", "top_p must be a number",
		`think "hard": want on, off, minimal, low, medium, high, xhigh, max`,
		"usage: /clear\n", "nosuch:latest not found", "usage: /load NAME",
		"usage: /save NAME", "model name",
	}
	rest := s.errs.String()
	for _, w := range want {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Fatalf("%q is missing or out of order in %q", w, s.errs)
		}
		rest = after
	}
	s.checkScreen(t, "/set\n/set parameter [NAME VALUE]", "/show\n/show info", "/?\n", "/save NAME", "Ctrl-C",
		"You said /home/me/notes.txt says")
	if len(s.requests) != 1 || strings.Contains(s.screen.String(), "never") {
		t.Errorf("%d requests; %s", len(s.requests), s.screen)
	}
}

// TestSessionStops checks that Ctrl-C ends the response and keeps its text, and that an error removes the message.
func TestSessionStops(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("Windows has no signal that a process can send itself")
	}
	s := converse(t, func(s *scripted) {
		s.echo.stop = func() {
			s.echo.stop = nil
			interrupt(t)
		}
	}, "hello", "more")
	s.checkRequest(t, 1, "user: hello", "assistant: You said ", "user: more")
	s.checkScreen(t, ">>> hello\nYou said \n\n>>> more\nYou said more\n")
	if s.ctx.Err() != nil {
		t.Error("Ctrl-C ended the program")
	}
	interrupt(t)
	select {
	case <-s.ctx.Done():
	case <-time.After(10 * time.Second):
		t.Error("Ctrl-C is caught although nothing runs")
	}

	s = converse(t, func(s *scripted) { s.echo.fails = errors.New("test failure") }, "hello", "more")
	s.checkRequest(t, 1, "user: more")
	s.checkScreen(t, ">>> hello\nYou said \n\n>>> more\n")
	if got := s.errs.String(); got != "test failure\ntest failure\n" {
		t.Errorf("standard error: %q", got)
	}

	s = converse(t, func(s *scripted) { s.echo.fails = errServerGone }, "hello", "more")
	if got, want := strings.Join(s.opened, " "), "talk:latest closed talk:latest closed"; got != want {
		t.Errorf("after the server stopped: %q, want %q", got, want)
	}
}

func TestSessionPictures(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"cat.png", "dog.png"} {
		if err := os.WriteFile(name, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := &session{App: &cli.App{Out: terminal.Data(io.Discard), Err: terminal.Notes(io.Discard)},
		style: &prompt.Style{Texts: &settings.Texts{}}, history: &terminal.History{}}
	v := &echo{}
	s.backend = v
	s.clear()
	for _, text := range []string{"see ./cat.png", "and ./dog.png ./cat.png", "./nosuch.png"} {
		if err := s.send(context.Background(), text); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for i, p := range v.requests[2].pictures {
		if p.ID != i {
			t.Errorf("picture %d has the ID %d", i, p.ID)
		}
		names = append(names, string(p.Data))
	}
	if got := strings.Join(names, " "); got != "cat.png dog.png cat.png" {
		t.Errorf("pictures %s", got)
	}
	if got := v.requests[2].turns[2].Parts; len(got) != 3 || got[2].Text != "and" {
		t.Errorf("parts %+v", got)
	}
	v.fails = errors.New("blind")
	if err := s.send(context.Background(), "./cat.png"); err == nil || len(s.pictures) != 3 || len(s.messages) != 6 {
		t.Errorf("%v; %d pictures, %d messages", err, len(s.pictures), len(s.messages))
	}
	if err := s.send(context.Background(), "./folder.png ./cat.png"); err == nil || len(s.pictures) != 3 {
		t.Errorf("%v; %d pictures", err, len(s.pictures))
	}
}

// TestSaveAndLoad checks that a saved session continues after /load.
func TestSaveAndLoad(t *testing.T) {
	s := converse(t, nil, "hello", "/set system other", "/set parameter stop \"a b\"", "/set parameter temperature 0.25",
		"/save mine", "/set system gone", "/load mine", "more",
		"/set system", "/save bare", "/load bare", "and", "/save mine")
	s.checkScreen(t, "saved mine:latest@sha256:", ">>> /load mine\n>>> a\nb\n\n>>> hello\nYou said hello\n\n>>> more\n",
		"saved bare:latest@", "saved mine:latest@")
	q := s.requests[1]
	if q.system != "other" || len(q.parameters) != 0 {
		t.Errorf("loaded: system %q, parameters %v", q.system, q.parameters)
	}
	s.checkRequest(t, 1, "user: more")
	if s.requests[2].system != "" {
		t.Errorf("the removed system prompt is %q", s.requests[2].system)
	}
	name, err := manifest.ParseName("mine")
	if err != nil {
		t.Fatal(err)
	}
	entry, err := s.store.Resolve(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := settings.Read(s.store, entry)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, m := range texts.Messages {
		said = append(said, m.Role+": "+m.Content)
	}
	want := []string{"user: a", "assistant: b", "user: hello", "assistant: You said hello", "user: more",
		"assistant: You said more", "user: and", "assistant: You said and"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("saved (- want, + saved):\n%s", diff)
	}
	if got, want := settings.ParameterText(texts.Parameters),
		"stop \"a b\"\ntemperature 0.25\ntop_k 7\ntop_p 0.9\n"; got != want {
		t.Errorf("parameters %q, want %q", got, want)
	}
}
