package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/convert/write"
)

// TestPlainProgress checks that progress outside a terminal has no escape sequences.
func TestPlainProgress(t *testing.T) {
	var errs bytes.Buffer
	p := (&App{Err: terminal.Notes(&errs)}).Progress(false)
	p.shown = p.shown.Add(-plainEvery)
	p.Pack(write.Event{Bytes: 1000, TotalBytes: 4000, Tensors: 1, TotalTensors: 4})
	p.End()
	if got := errs.String(); !strings.HasPrefix(got, "packing 1.0 kB of 4.0 kB, 1 of 4 tensors, ") ||
		strings.ContainsAny(got, "\r\x1b") || !strings.HasSuffix(got, "\n") {
		t.Errorf("progress: %q", got)
	}
}
