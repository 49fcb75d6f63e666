package runner

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/ingotml/ingot/mlx"
)

// lastWord begins the line with which the program itself reports a fatal error.
const lastWord = "ingot: "

// tail keeps the end of a process's standard error, and the first line of its crash report, which pages of stacks and
// registers follow.
type tail struct {
	copy io.Writer // may be nil

	mu    sync.Mutex
	kept  []byte // at most tailBytes
	line  []byte // the beginning of the current line
	crash string
}

const (
	tailBytes = 16 << 10
	tailLines = 8
	lineBytes = 1 << 10
)

// crashes lists how the first line of a crash report begins, of a Go program or of the libraries that it links.
var crashes = []string{
	lastWord + mlx.Truncated, "panic: ", "fatal error: ", "SIG", "runtime: ", "runtime/cgo: ", "unexpected fault address",
	"terminate called", "libc++abi: ",
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.copy != nil {
		_, _ = t.copy.Write(p)
	}
	t.kept = append(t.kept, p[max(0, len(p)-tailBytes):]...)
	if n := len(t.kept) - tailBytes; n > 0 {
		t.kept = append(t.kept[:0], t.kept[n:]...)
	}
	for rest := p; len(rest) > 0 && t.crash == ""; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		t.line = append(t.line, part[:min(len(part), lineBytes-len(t.line))]...)
		if ended {
			t.look(string(t.line))
			t.line = t.line[:0]
		}
		rest = after
	}
	return len(p), nil
}

func (t *tail) look(line string) {
	for _, c := range crashes {
		if strings.HasPrefix(line, c) {
			t.crash = strings.TrimSpace(line)
		}
	}
}

// last returns the first line of the crash report; without a crash, the last few lines joined into one.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.crash != "" {
		return t.crash
	}
	list := strings.Split(strings.TrimSpace(string(t.kept)), "\n")
	return strings.TrimSpace(strings.Join(list[max(0, len(list)-tailLines):], " | "))
}
