package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/anthropic"
	"github.com/ingotml/ingot/server/openai"
	"github.com/ingotml/ingot/server/wire"
)

var updateErrors = flag.Bool("update-errors", false, "rewrite testdata/errors.golden")

// What the command line and the server's APIs make of every error of the module, is pinned.
func TestErrorsArePinned(t *testing.T) {
	core := &server.Server{}
	dialects := slices.Concat(openai.New(core).Dialects, anthropic.New(core).Dialects)
	var b strings.Builder
	for _, s := range sentinels {
		err := fmt.Errorf("do it: %w", s.err)
		var told bytes.Buffer
		a := &app{err: terminal.Notes(&told)}
		code := a.exitCode(context.Background(), err)
		if err := a.err.Flush(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n\texit %d: %s\n", s.name, code, strings.TrimSpace(told.String()))
		for _, path := range []string{"/api/chat", "/v1/chat/completions", "/v1/messages"} {
			status, body := dialects.Failure(path, wire.ErrorOf(err))
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "\t%s: %d %s\n", path, status, text)
		}
	}
	got := b.String()
	const file = "testdata/errors.golden"
	if *updateErrors {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the errors' exit codes, messages and statuses have changed:\n%s", got)
	}
}
