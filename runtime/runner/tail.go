package runner

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/ingotml/ingot/mlx"
)

// lastWord begins the lines with which the program itself ends.
const lastWord = "ingot: "

// tail keeps what a process said last, and the line with which a crash of it began: pages of stacks and registers follow that.
type tail struct {
	copy io.Writer // may be nil

	mu    sync.Mutex
	kept  []byte // at most tailBytes
	line  []byte // the beginning of one that has not ended
	crash string
}

const (
	tailBytes = 16 << 10
	tailLines = 8
	lineBytes = 1 << 10
)

// crashes are how the lines begin with which a Go program, or what is linked into it, says that it dies.
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

// last is the line with which a crash began, else the last few lines as one.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.crash != "" {
		return t.crash
	}
	list := strings.Split(strings.TrimSpace(string(t.kept)), "\n")
	return strings.TrimSpace(strings.Join(list[max(0, len(list)-tailLines):], " | "))
}
