package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/anthropic"
	"github.com/ingotml/ingot/server/openai"
	"github.com/ingotml/ingot/server/wire"
)

// The command line and the server's APIs make of an error what the table of package fault says.
func TestErrorsFollowTheTable(t *testing.T) {
	core := &server.Server{}
	dialects := slices.Concat(openai.New(core).Dialects, anthropic.New(core).Dialects)
	for _, k := range fault.Kinds() {
		err := fmt.Errorf("do it: %w", k.Err)
		message := err.Error()

		var told bytes.Buffer
		a := &App{Err: terminal.Notes(&told)}
		code := a.ExitCode(context.Background(), err)
		if err := a.Err.Flush(); err != nil {
			t.Fatal(err)
		}
		want := "ingot: " + message
		if k.Remedy != "" {
			want += "; " + k.Remedy
		}
		if got := strings.TrimSpace(told.String()); code != max(k.Exit, ExitFailed) || got != want {
			t.Errorf("%s: exit code %d, %q, want %q", k.Name, code, got, want)
		}

		for path, c := range map[string]struct {
			busy int
			body string
		}{
			"/api/chat":            {503, `{"error":%q}`},
			"/v1/chat/completions": {503, `{"error":{"message":%q,"type":`},
			"/v1/messages":         {529, `"message":%q}}`},
		} {
			wanted, text := k.Status, message
			switch {
			case wanted == 0:
				wanted = 500
			case k.Advice != "":
				text += "; " + k.Advice
			}
			if wanted == 503 {
				wanted = c.busy
			}
			if path == "/v1/messages" && k.Code == fault.CodeContext {
				text = "prompt is too long: " + text
			}
			status, body := dialects.Failure(path, nil, wire.ErrorOf(err))
			got, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			if status != wanted || !strings.Contains(string(got), fmt.Sprintf(c.body, text)) {
				t.Errorf("%s %s: status %d, %s, want %d %q", path, k.Name, status, got, wanted, text)
			}
			if path == "/v1/chat/completions" && k.Code != "" && !strings.Contains(string(got), `"code":"`+string(k.Code)+`"`) {
				t.Errorf("%s %s: %s lacks the code %s", path, k.Name, got, k.Code)
			}
		}
	}
}
